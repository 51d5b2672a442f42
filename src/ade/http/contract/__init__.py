"""The worker contract over HTTP: an app of its own, whose errors are `{"detail": ...}`."""
