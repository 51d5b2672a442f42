"""The column that an author's functions see: some cells of one column, worked on all at once.

Text operations touch only the cells that hold text, arithmetic only those that hold numbers; other
cells stay as they are. Nothing changes in place: every operation gives a new column.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from ade_engine.package import conversion
from ade_engine.package.author_errors import Misuse
from ade_engine.package.column_core import ColumnCore
from ade_engine.package.issues import Issue, Issues
from ade_engine.package.mask import Mask
from ade_engine.sheets.cells import CellArray, CellError, CellKind


class Column(ColumnCore):
    """Some consecutive cells of one column of a table.

    `header` is the text above it, `letter` its place in the sheet, `field` the field it was mapped
    to, if it was.
    """

    __slots__ = ()
    __hash__ = None

    def __iter__(self) -> Iterator[object]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"<Column {self.field or self.letter or ''} of {len(self)} cells>"  # never a value

    @property
    def values(self) -> list[object]:
        """Return the cells as Python values, None for an empty one; slow for many cells."""
        return self.cells.values()

    # --- questions that give masks ---

    def is_text(self) -> Mask:
        """Mark cells that hold text."""
        return self._answer(self.cells.is_kind(CellKind.TEXT))

    def is_number(self) -> Mask:
        """Mark cells that hold a number."""
        return self._answer(self.cells.is_kind(CellKind.NUMBER))

    def is_date(self) -> Mask:
        """Mark cells that hold a date or a time."""
        return self._answer(self.cells.is_kind(CellKind.DATE))

    def is_bool(self) -> Mask:
        """Mark cells that hold a truth value."""
        return self._answer(self.cells.is_kind(CellKind.BOOL))

    def is_error(self) -> Mask:
        """Mark cells that show an error such as #REF!."""
        return self._answer(self.cells.is_kind(CellKind.ERROR))

    def matches(self, pattern: str) -> Mask:
        """Mark cells whose whole text, as it would be written, matches a regular expression."""
        return Mask(_matching(self._text(), f"^(?:{pattern})$", pattern))

    def contains(self, pattern: str) -> Mask:
        """Mark cells in whose text a regular expression is found."""
        return Mask(_matching(self._text(), pattern, None))

    def is_in(self, values: Iterable[object]) -> Mask:
        """Mark cells that hold one of these values."""
        wanted = CellArray.of(values)
        hits = np.zeros(len(self), np.bool_)
        if (texts := wanted.text.filter(pl.Series(wanted.is_kind(CellKind.TEXT)))).len():
            found = self.cells.text.is_in(texts.implode()).fill_null(False).to_numpy()
            hits |= found & self.cells.is_kind(CellKind.TEXT)
        for kind in (CellKind.NUMBER, CellKind.BOOL, CellKind.DATE):
            if (numbers := wanted.numbers[wanted.is_kind(kind)]).size:
                hits |= np.isin(self.cells.numbers, numbers) & self.cells.is_kind(kind)
        return self._answer(hits)

    def is_between(self, low: object, high: object) -> Mask:
        """Mark cells from `low` to `high`, both included."""
        return (self >= low) & (self <= high)

    def is_close(self, other: Column | float, within: float = 0.005) -> Mask:
        """Mark numbers that differ by at most `within`."""
        return abs(self - other) <= within

    def is_repeated(self) -> Mask:
        """Mark cells whose value stands in another cell of this column, too."""
        return self._answer(self.fingerprints().is_duplicated().to_numpy())

    def longer_than(self, characters: int) -> Mask:
        """Mark texts of more than so many characters."""
        return Mask(self._text().str.len_chars() > characters)

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: object) -> Mask:
        return self._compared(other, operator.lt)

    def __le__(self, other: object) -> Mask:
        return self._compared(other, operator.le)

    def __gt__(self, other: object) -> Mask:
        return self._compared(other, operator.gt)

    def __ge__(self, other: object) -> Mask:
        return self._compared(other, operator.ge)

    # --- questions that give numbers ---

    def share_matching(self, pattern: str) -> float:
        """Return the share of cells that match, empty ones left out."""
        return self.matches(pattern).share

    def share_in(self, values: Iterable[object]) -> float:
        """Return the share of cells that hold one of these values, empty ones left out."""
        return self.is_in(values).share

    def share_numbers(self) -> float:
        """Return the share of cells that are, or can be read as, numbers."""
        return self.as_number().is_number().share

    def share_dates(self) -> float:
        """Return the share of cells that are, or can be read as, dates."""
        return self.as_date().is_date().share

    def share_distinct(self) -> float:
        """Return the number of different values for each cell that is not empty."""
        filled = self.fingerprints().drop_nulls()
        return filled.n_unique() / filled.len() if filled.len() else 0.0

    def filled(self) -> int:
        """Count the cells that are not empty."""
        return len(self) - self.is_empty().count

    def sum(self) -> float:
        """Add up the numbers."""
        with np.errstate(over="ignore"):
            return float(np.nansum(self._numbers()))

    def min(self) -> float | None:
        """Return the least number."""
        return _extreme(np.nanmin, self._numbers())

    def max(self) -> float | None:
        """Return the greatest number."""
        return _extreme(np.nanmax, self._numbers())

    # --- other columns ---

    def as_text(self) -> Column:
        """Write every cell as text."""
        return self._with(conversion.to_text(self.cells))

    def as_number(self) -> Column:
        """Read texts as numbers where they are; the others stay."""
        return self._with(conversion.to_number(conversion.trimmed(self.cells), self.decimal))

    def as_date(self, day_first: bool | None = None) -> Column:
        """Read texts as dates where they are; the others stay."""
        order = self.day_first if day_first is None else day_first
        return self._with(conversion.to_date(conversion.trimmed(self.cells), day_first=order))

    def as_bool(self) -> Column:
        """Read yes and no and the like as truth values; the others stay."""
        return self._with(conversion.to_boolean(self.cells))

    def strip(self, characters: str = conversion.SPACES) -> Column:
        """Take spaces, or the given characters, off both ends."""
        return self._texts(lambda text: text.str.strip_chars(characters))

    def squeeze(self) -> Column:
        """Make one space of many, and take them off both ends."""
        spaces = r"[\s\x{a0}\x{202f}]+"
        return self._texts(lambda text: text.str.replace_all(spaces, " ").str.strip_chars())

    def upper(self) -> Column:
        """Write in capitals."""
        return self._texts(lambda text: text.str.to_uppercase())

    def lower(self) -> Column:
        """Write in small letters."""
        return self._texts(lambda text: text.str.to_lowercase())

    def title(self) -> Column:
        """Begin each word with a capital."""
        return self._texts(lambda text: text.str.to_titlecase())

    def replace(
        self, old: str | Mapping[str, str], new: str = "", *, regex: bool = False
    ) -> Column:
        """Replace a part of the texts everywhere, or whole texts by a mapping."""
        if isinstance(old, Mapping):
            pairs = dict(old)
            return self._texts(lambda text: text.replace(pairs))
        if regex:
            new = re.sub(r"\\(\d+)", r"${\1}", new)  # groups as Python writes them
        return self._texts(lambda text: text.str.replace_all(old, new, literal=not regex))

    def extract(self, pattern: str, group: int = 1) -> Column:
        """Keep what a group of a regular expression finds; empty where it finds nothing."""
        return self._texts(lambda text: text.str.extract(pattern, group))

    def pad_left(self, length: int, character: str = "0") -> Column:
        """Fill texts up from the left."""
        return self._texts(lambda text: text.str.pad_start(length, character))

    def fill_empty(self, value: object) -> Column:
        """Put a value into the empty cells."""
        return self.where(~self.is_empty(), value)

    def where(self, mask: Mask, otherwise: object = None) -> Column:
        """Keep the marked cells, and put another value, or another column's, into the others."""
        keep = self._fitting(mask).marked()
        if isinstance(otherwise, Column):
            other = self._same_length(otherwise).cells
        else:
            one = CellArray.of([otherwise])
            other = CellArray(
                np.repeat(one.kinds, len(self)),
                np.repeat(one.numbers, len(self)),
                one.text.new_from_index(0, len(self)),
            )
        return self._with(
            CellArray(
                np.where(keep, self.cells.kinds, other.kinds),
                np.where(keep, self.cells.numbers, other.numbers),
                self.cells.text.zip_with(pl.Series(keep), other.text),
            )
        )

    def map(self, change: Mapping[Any, Any] | Callable[[Any], Any]) -> Column:
        """Change each value by a mapping or a function, called once for each different text.

        Empty cells and errors stay; so does a value that a mapping does not hold.
        """
        if isinstance(change, Mapping):
            held = change
            return self._with(CellArray.of([held.get(value, value) for value in self.values]))
        known: dict[str, object] = {}
        changed = []
        for value in self.values:
            if isinstance(value, str):
                if value not in known:
                    known[value] = change(value)
                changed.append(known[value])
            elif value is None or isinstance(value, CellError):
                changed.append(value)
            else:
                changed.append(change(value))
        return self._with(CellArray.of(changed))

    def round(self, digits: int = 0) -> Column:
        """Round numbers half away from zero, as spreadsheets do."""
        scale = 10.0**digits
        numbers = self._numbers()
        with np.errstate(over="ignore"):  # what is too large to scale stays as it is
            rounded = np.sign(numbers) * np.floor(np.abs(numbers) * scale + 0.5 + 1e-9) / scale
        return self._computed(rounded).where(Mask(np.isfinite(rounded)), self)

    def shift(self, rows: int = 1) -> Column:
        """Move every cell so many rows down; the first ones become empty."""
        source = np.arange(len(self)) - rows
        inside = (source >= 0) & (source < len(self))
        taken = np.clip(source, 0, max(len(self) - 1, 0))
        moved = CellArray(
            self.cells.kinds[taken], self.cells.numbers[taken], self.cells.text.gather(taken)
        )
        return self._with(moved).where(Mask(inside))

    def cumulative_sum(self) -> Column:
        """Add up the numbers from the top to each cell."""
        with np.errstate(over="ignore"):
            return self._computed(np.cumsum(np.nan_to_num(self._numbers())))

    def __add__(self, other: Column | float) -> Column:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._computed(self._numbers() + self._operand(other))

    def __sub__(self, other: Column | float) -> Column:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._computed(self._numbers() - self._operand(other))

    def __mul__(self, other: Column | float) -> Column:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._computed(self._numbers() * self._operand(other))

    def __truediv__(self, other: Column | float) -> Column:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return self._computed(self._numbers() / self._operand(other))

    def __neg__(self) -> Column:
        return self._computed(-self._numbers())

    def __abs__(self) -> Column:
        return self._computed(np.abs(self._numbers()))

    # --- what validators give back, and the way out ---

    def issues_where(
        self, mask: Mask, code: str, severity: str = "error", message: str = ""
    ) -> Issues:
        """Say that the marked cells have an issue; the message must hold no value."""
        return Issues(Issue(code, severity, message), self._fitting(mask))

    def to_polars(self) -> pl.Series:
        """Return the cells as a polars series: of numbers or dates if all are, else of texts."""
        kinds = set(np.unique(self.cells.kinds).tolist()) - {CellKind.EMPTY, CellKind.NO_VALUE}
        if kinds == {CellKind.NUMBER}:
            return pl.Series(self.cells.numbers, nan_to_null=True)
        if kinds == {CellKind.DATE}:
            return conversion.moments(self.cells.numbers)
        return self._text()


def _matching(text: pl.Series, pattern: str, whole: str | None) -> pl.Series:
    """Search with the fast engine; look-around and back-references go to Python's."""
    try:
        return text.str.contains(pattern)
    except pl.exceptions.ComputeError:
        try:
            expression = re.compile(pattern if whole is None else whole)
        except re.error:
            raise Misuse("this is no regular expression") from None
    found = expression.search if whole is None else expression.fullmatch
    answers = {one: found(one) is not None for one in text.drop_nulls().unique().to_list()}
    return pl.Series(
        [None if one is None else answers[one] for one in text.to_list()], dtype=pl.Boolean
    )


def _extreme(choose: Callable[[Any], Any], numbers: Any) -> float | None:
    return float(choose(numbers)) if np.isfinite(numbers).any() else None
