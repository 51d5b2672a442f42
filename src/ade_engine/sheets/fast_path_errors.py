"""Signal that the fast reader cannot read a file, so that the slow one must."""

from polars.exceptions import PolarsError

FAST_PATH_ERRORS = (ValueError, IndexError, OverflowError, PolarsError)
"""What the fast reader may raise on unforeseen damage; the slow reader then reports the cause."""


class FastPathUnsupported(Exception):
    """The file may be valid, but is not written in the way that the fast reader supports."""
