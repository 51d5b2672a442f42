"""Record a run: a stream of events, and the artifact that is derived from it."""
