"""Convert Excel's date serial numbers (1900 and 1904 systems) and recognise date formats."""

from __future__ import annotations

import re

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray
from ade_engine.sheets.cells import DAY_MS, TIME_DAY_MS

SERIAL_1970 = 25_569  # the serial number of 1970-01-01 in the 1900 system
SERIAL_1904 = 1_462  # how many days later the 1904 system begins
SERIAL_MAX = 2_958_466  # the day after 9999-12-31
LEAP_DAY_1900 = 60  # Excel counts 1900-02-29, which did not exist

BUILT_IN_DATES = frozenset({*range(14, 23), *range(27, 37), 45, 47, *range(50, 59), *range(71, 82)})
_NOT_CODES = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_DATE_CODE = re.compile(r"[dmyhs]|am/pm|a/p", re.IGNORECASE)
_ZEROS = re.compile(r"\s*0[\s-]*0")
_GENERAL = re.compile(r"general", re.IGNORECASE)


def shows_date(number_format: str) -> bool:
    """Return whether a number format shows a date or a time of day.

    A format of elapsed time, such as `[h]:mm`, does not: its number is a duration in days.
    """
    first = number_format.split(";", 1)[0] or number_format
    codes = _GENERAL.sub("", _NOT_CODES.sub("", first))
    return _ELAPSED.search(codes) is None and _DATE_CODE.search(codes) is not None


def fills_with_zeros(number_format: str) -> bool:
    """Return whether a number format shows whole numbers with zeros on the left, as in `00000`."""
    first = number_format.split(";", 1)[0]
    return _ZEROS.match(_NOT_CODES.sub("", first)) is not None


def from_serials(serials: FloatArray, *, epoch_1904: bool) -> tuple[FloatArray, BoolArray]:
    """Convert serial numbers to milliseconds since 1970, and mark those that are valid dates."""
    time_only = (serials >= 0) & (serials < 1)
    if epoch_1904:
        serials = serials + SERIAL_1904
        possible = (serials >= 0) & (serials < SERIAL_MAX)
    else:
        possible = (serials >= 0) & (serials < SERIAL_MAX)
        serials = np.where(serials < LEAP_DAY_1900, serials + 1, serials)
    ms = np.rint((serials - SERIAL_1970) * DAY_MS)
    if epoch_1904:
        times = np.rint((serials - SERIAL_1904) * DAY_MS) + TIME_DAY_MS
        ms = np.where(time_only, times, ms)
    return ms, possible


def to_serials(ms: FloatArray) -> FloatArray:
    """Convert milliseconds since 1970 to serial numbers of the 1900 system."""
    serials = ms / DAY_MS + SERIAL_1970
    return np.where(serials < LEAP_DAY_1900 + 1, serials - 1, serials)
