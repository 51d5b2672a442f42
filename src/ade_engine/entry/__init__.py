"""The modules that a child process runs, one per kind of work."""
