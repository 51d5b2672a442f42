"""Start, list and end pilots on an engine."""
