"""Decide once for a whole column how its dates and numbers are written.

`13/02/2024` proves that the day comes first, `02/13/2024` that the month does, and `01/02/2024`
proves nothing. In the same way `1.234,5` proves a decimal comma, `1,234.5` a decimal point, and
`1,234` nothing. All texts of a column are read in one way: the one that most of the proofs support.
Where there is no proof, or where proofs contradict each other, the texts that prove nothing are in
doubt. They follow the package's settings, then the file's own convention, then the defaults, and
the run reports them as issues.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import BoolArray
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.sheets.currencies import PATTERN as CURRENCY
from ade_engine.sheets.currencies import SIGNS

DECIMAL_DEFAULT = "."
DAY_FIRST_DEFAULT = False

_MONTH = r"(?:0?[1-9]|1[0-2])"
_DAY_ONLY = r"(?:1[3-9]|2\d|3[01])"
_YEAR = r"[-/](?:\d\d|\d{4})(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?\s*$"
_DAY_IS_FIRST = rf"^\s*{_DAY_ONLY}[-/]{_MONTH}{_YEAR}"
_MONTH_IS_FIRST = rf"^\s*{_MONTH}[-/]{_DAY_ONLY}{_YEAR}"
_EITHER_ORDER = rf"^\s*{_MONTH}[-/]{_MONTH}{_YEAR}"
_SAME_TWICE = (
    "^\\s*(?:"
    + "|".join(
        f"{part}[-/]{part}" for part in (*(f"0?{one}" for one in range(1, 10)), "10", "11", "12")
    )
    + ")[-/]"
)

_BEFORE = rf"^[\s\x{{a0}}\x{{202f}}(+\-−{SIGNS}A-Z]*"
_AFTER = rf"[\s\x{{a0}}\x{{202f}})%\-−{SIGNS}A-Z]*$"
_UNIT_SIGN = rf"[%{SIGNS}A-Z]"
_SPACED = r"['’\s\x{a0}\x{202f}]"
_EITHER_SIGN = rf"{_BEFORE}[1-9]\d{{0,2}}[.,]\d{{3}}{_AFTER}"


def _proof_of_decimal(decimal: str, group: str) -> str:
    """Return a pattern of numbers in which `decimal` can only be the decimal sign."""
    numbers = (
        rf"\d{{1,3}}(?:{group}\d{{3}})+{decimal}\d*",
        rf"\d{{1,3}}(?:{group}\d{{3}}){{2,}}",
        rf"\d{{1,3}}(?:{_SPACED}\d{{3}})+{decimal}\d*",
        rf"\d+{decimal}(?:\d{{0,2}}|\d{{4,}})",
        rf"{decimal}\d+",
        rf"0\d*{decimal}\d{{3}}",
        rf"\d{{4,}}{decimal}\d{{3}}",
        rf"\d+{decimal}\d+[eE][-+]?\d+",
    )
    return f"{_BEFORE}(?:{'|'.join(numbers)}){_AFTER}"


_POINT_IS_DECIMAL = _proof_of_decimal(r"\.", ",")
_COMMA_IS_DECIMAL = _proof_of_decimal(",", r"\.")


@dataclass(frozen=True)
class Preference:
    """How dates and numbers are read where a column does not tell; None where nobody says.

    In a workbook whose `epoch_1904` is true, the days of date serials are counted from 1904.
    """

    decimal: str | None = None
    day_first: bool | None = None
    epoch_1904: bool = False

    def otherwise(self, other: Preference) -> Preference:
        """Fill what this preference leaves open from another one."""
        return Preference(
            other.decimal if self.decimal is None else self.decimal,
            other.day_first if self.day_first is None else self.day_first,
            self.epoch_1904 or other.epoch_1904,
        )


class Notation(Protocol):
    """How the dates and numbers of a column are written."""

    @property
    def decimal(self) -> str:
        """Return the decimal sign: `.` or `,`."""

    @property
    def day_first(self) -> bool:
        """Return whether 01/02/2024 is 1 February."""

    @property
    def preference(self) -> Preference:
        """Return what holds for texts that were not among those of the column."""


@dataclass(frozen=True)
class FixedNotation:
    """A notation that does not depend on the cells, for texts that an author's code has changed."""

    preference: Preference = Preference()

    @property
    def decimal(self) -> str:
        """Return the preferred decimal sign, or the default."""
        return self.preference.decimal or DECIMAL_DEFAULT

    @property
    def day_first(self) -> bool:
        """Return the preferred order, or the default."""
        preferred = self.preference.day_first
        return DAY_FIRST_DEFAULT if preferred is None else preferred


class NotationOfCells:
    """The notation of cells that are at hand, decided when it is first needed."""

    def __init__(self, cells: CellArray, preference: Preference = Preference()) -> None:
        self._cells = cells
        self.preference = preference

    @cached_property
    def decimal(self) -> str:
        """Return the decimal sign that the cells prove, or else the preferred one."""
        evidence = DecimalEvidence()
        evidence.add(self._cells)
        return evidence.decimal(self.preference)

    @cached_property
    def day_first(self) -> bool:
        """Return the order that the cells prove, or else the preferred one."""
        evidence = DateEvidence()
        evidence.add(self._cells)
        return evidence.day_first(self.preference)


@dataclass
class _Evidence:
    """Count the texts that prove one of two readings; `either` if some text allows both."""

    first: int = 0
    second: int = 0
    either: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Return whether the column has texts that can be read in two ways."""
        proven = (self.first > 0) != (self.second > 0)
        return self.either and not proven

    def _chosen(self, preferred: bool) -> bool:
        return preferred if self.first == self.second else self.first > self.second


@dataclass
class DateEvidence(_Evidence):
    """What the texts of a column say about the order of day and month; `first` is day first."""

    def add(self, cells: CellArray) -> None:
        """Count the texts of some cells."""
        text = _texts(cells)
        if not len(text) or not text.str.contains(r"^\s*\d{1,2}[-/]\d").any():
            return
        self.first += _count(text, _DAY_IS_FIRST)
        self.second += _count(text, _MONTH_IS_FIRST)
        self.either = self.either or bool(allow_both_orders(text).any())

    def day_first(self, preference: Preference) -> bool:
        """Decide whether the day comes first."""
        return self._chosen(FixedNotation(preference).day_first)


@dataclass
class DecimalEvidence(_Evidence):
    """What the texts of a column say about the decimal sign; `first` is a decimal comma."""

    def add(self, cells: CellArray) -> None:
        """Count the texts of some cells."""
        text = _texts(cells)
        if not len(text):
            return
        self.first += _count(text, _COMMA_IS_DECIMAL)
        self.second += _count(text, _POINT_IS_DECIMAL)
        self.either = self.either or bool(allow_both_signs(text).any())

    def decimal(self, preference: Preference) -> str:
        """Decide which sign is the decimal sign."""
        return "," if self._chosen(FixedNotation(preference).decimal == ",") else "."


@dataclass
class UnitEvidence:
    """Which currencies, and whether percent signs, the numbers of a column are written with."""

    currencies: set[str] = field(default_factory=set)
    percents: bool = False
    others: bool = False

    def add(self, cells: CellArray) -> None:
        """Add the texts of some cells."""
        text = _texts(cells)
        if not len(text):
            return
        marked = text.filter(text.str.contains(_UNIT_SIGN))
        if len(marked) < len(text):
            self.others = True
        if not len(marked):
            return
        percents = marked.str.contains("%", literal=True)
        self.percents |= bool(percents.any())
        self.others |= not percents.all()
        if len(self.currencies) < 2:
            found = marked.filter(marked.str.contains(r"\d")).str.extract(f"({CURRENCY})")
            self.currencies |= set(found.drop_nulls().unique().to_list())

    @property
    def mixes_currencies(self) -> bool:
        """Return whether amounts of several currencies are in one column."""
        return len(self.currencies) > 1

    @property
    def mixes_percents(self) -> bool:
        """Return whether only some of the numbers have a percent sign."""
        return self.percents and self.others


def has_currency(text: pl.Series) -> BoolArray:
    """Mark the texts that name a currency."""
    return _matching(text, rf"\d.*(?:{CURRENCY})|(?:{CURRENCY}).*\d")


def allow_both_orders(text: pl.Series) -> BoolArray:
    """Mark the dates whose day and month could be exchanged."""
    return _matching(text, _EITHER_ORDER) & ~_matching(text, _SAME_TWICE)


def allow_both_signs(text: pl.Series) -> BoolArray:
    """Mark the numbers whose only separator could be a decimal or a thousands sign."""
    return _matching(text, _EITHER_SIGN)


def _texts(cells: CellArray) -> pl.Series:
    if not cells.is_kind(CellKind.TEXT).any():
        return cells.text.clear()
    return cells.text.drop_nulls()


def _count(text: pl.Series, pattern: str) -> int:
    return int(text.str.contains(pattern).sum() or 0)


def _matching(text: pl.Series, pattern: str) -> BoolArray:
    found: BoolArray = text.str.contains(pattern).fill_null(False).to_numpy()
    return np.asarray(found, np.bool_)
