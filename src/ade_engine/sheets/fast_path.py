"""Say that a file needs the slow way."""

from polars.exceptions import PolarsError

FAST_PATH_ERRORS = (ValueError, IndexError, OverflowError, PolarsError)
"""What the fast way may raise on damage that it did not foresee; the slow way says what it is."""


class FastPathUnsupported(Exception):
    """The file is right, perhaps, but not written in the way that the fast reader knows."""
