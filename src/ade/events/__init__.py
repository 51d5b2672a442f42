"""Carry the news of what happens to jobs: wake, stream, mirror."""
