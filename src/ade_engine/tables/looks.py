"""Classify cells by how they look: here a number written as text is a number.

The readers keep text as it is ("1,234" in a CSV stays text), but tables are found by appearance.
"""

from __future__ import annotations

import math
import re
from enum import IntEnum
from functools import lru_cache

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray
from ade_engine.sheets.cells import CellKind


class CellLook(IntEnum):
    """What the content of a cell looks like."""

    NOTHING = 0
    WORDS = 1
    NUMBER = 2
    DATE = 3
    YEAR = 4
    MARK = 5  # a placeholder for a missing value: "-", "..", "n/a"


LOOK_OF_KIND = {
    CellKind.EMPTY: CellLook.NOTHING,
    CellKind.TEXT: CellLook.WORDS,
    CellKind.NUMBER: CellLook.NUMBER,
    CellKind.BOOL: CellLook.WORDS,
    CellKind.DATE: CellLook.DATE,
    CellKind.ERROR: CellLook.NUMBER,  # a formula that failed usually computes a number
    CellKind.NO_VALUE: CellLook.NUMBER,
}

FIRST_YEAR, LAST_YEAR = 1900, 2100
TEXT_CHARACTERS_MAX = 40  # longer texts are not numbers

_NUMBER = re.compile(
    r"[-+−(<>≤≥~]?\s*(?:[$€£¥]|US\$|USD|EUR|GBP)?\s*[-+−(]?\s*"
    r"(?:\d{1,3}(?:[,.'\s ]\d{3})+|\d+)?(?:[.,]\d*)?(?:[eE][-+]?\d+)?"
    r"\s*(?:%|[$€£¥]|[KMBkmb]|bn)?\s*\)?\s*(?:[*†‡]+|\(?[a-z0-9]\))?",
)
_DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
_YEAR = re.compile(r"(?:19|20)\d\d(?:\.0+)?(?:\s*[-/–]\s*(?:\d\d|(?:19|20)\d\d))?\s*[*†‡]?")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[ap]m|Z)?)?"
    r"|\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?"
    rf"|\d{{1,2}}[-\s/]*(?:{_MONTHS})[a-z]*\.?(?:[-\s/,]*\d{{2,4}})?"
    rf"|(?:{_MONTHS})[a-z]*\.?[-\s/]*\d{{1,2}}(?:,?\s*\d{{4}})?"
    rf"|(?:{_MONTHS})[a-z]*\.?[-\s/,]+\d{{4}}",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"[-–—.…*/\\:?~_xX#]{1,5}|n[./]?\s?[ad]\.?|n/?ap|nil|null|none|nan|tbd|unknown|\(?[xzsd]\)"
    r"|(?:data )?(?:not|un)[\s-]*(?:available|applicable|reported|collected|known)|no data",
    re.IGNORECASE,
)


@lru_cache(maxsize=8192)
def look_of_text(text: str) -> CellLook:
    """Classify a text."""
    text = text.strip()
    if not text:
        return CellLook.NOTHING
    if len(text) > TEXT_CHARACTERS_MAX:
        return CellLook.WORDS
    if _MARK.fullmatch(text):
        return CellLook.MARK
    if not any(character.isdigit() for character in text):
        return CellLook.WORDS
    if _YEAR.fullmatch(text):
        return CellLook.YEAR
    if _NUMBER.fullmatch(text):
        return CellLook.NUMBER
    return CellLook.DATE if _DATE.fullmatch(text) else CellLook.WORDS


@lru_cache(maxsize=8192)
def number_of_text(text: str) -> float:
    """Return the first number in a text, ignoring commas; NaN if there is none."""
    digits = _DIGITS.search(text.replace(",", "")) if len(text) <= TEXT_CHARACTERS_MAX else None
    return float(digits[0]) if digits else math.nan


def looks_like_year(numbers: FloatArray) -> BoolArray:
    """Mark the numbers that are probably years."""
    years: BoolArray = (
        (numbers >= FIRST_YEAR) & (numbers <= LAST_YEAR) & (numbers == np.floor(numbers))
    )
    return years
