"""Units of size and time."""

KIB = 1024
MIB = 1024 * KIB
DAY_SECONDS = 86_400
MICROSECONDS = 1_000_000
"""Microseconds in a second: the database keeps times in microseconds."""
