"""What agents do to jobs by the worker contract: claim one, report on it, stay alive."""
