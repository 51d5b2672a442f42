"""The column that an author's functions receive, with vectorised operations on its cells.

Text operations change only cells that hold text, and arithmetic only cells that hold numbers; other
cells stay as they are. Nothing changes in place: every operation returns a new column.
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
    """Consecutive cells of one column of a table.

    `header` is its header text, `letter` its column letters in the sheet, and `field` the field
    that it was mapped to, if any.
    """

    __slots__ = ()
    __hash__ = None

    def __iter__(self) -> Iterator[object]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"<Column {self.field or self.letter or ''} of {len(self)} cells>"  # never a value

    @property
    def values(self) -> list[object]:
        """Return the cells as Python values (None if empty); slow for many cells."""
        return self.cells.values()

    # --- masks ---

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
        """Mark cells that hold a boolean."""
        return self._answer(self.cells.is_kind(CellKind.BOOL))

    def is_error(self) -> Mask:
        """Mark cells that show an error such as #REF!."""
        return self._answer(self.cells.is_kind(CellKind.ERROR))

    def matches(self, pattern: str) -> Mask:
        """Mark cells whose whole text matches a regular expression; numbers and dates as text."""
        return Mask(_matching(self._text(), f"^(?:{pattern})$", pattern))

    def contains(self, pattern: str) -> Mask:
        """Mark cells whose text contains a match of a regular expression."""
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
        """Mark cells whose value occurs more than once in this column."""
        return self._answer(self.fingerprints().is_duplicated().to_numpy())

    def longer_than(self, characters: int) -> Mask:
        """Mark texts that are longer than this many characters."""
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

    # --- aggregates ---

    def share_matching(self, pattern: str) -> float:
        """Return the share of non-empty cells that match a regular expression."""
        return self.matches(pattern).share

    def share_in(self, values: Iterable[object]) -> float:
        """Return the share of non-empty cells that hold one of these values."""
        return self.is_in(values).share

    def share_numbers(self) -> float:
        """Return the share of non-empty cells that are numbers or can be read as numbers."""
        return self.as_number().is_number().share

    def share_dates(self) -> float:
        """Return the share of non-empty cells that are dates or can be read as dates."""
        return self.as_date().is_date().share

    def share_distinct(self) -> float:
        """Return the number of distinct values divided by the number of non-empty cells."""
        filled = self.fingerprints().drop_nulls()
        return filled.n_unique() / filled.len() if filled.len() else 0.0

    def filled(self) -> int:
        """Count the cells that are not empty."""
        return len(self) - self.is_empty().count

    def sum(self) -> float:
        """Return the sum of the numbers."""
        with np.errstate(over="ignore"):
            return float(np.nansum(self._numbers()))

    def min(self) -> float | None:
        """Return the smallest number, or None if there is none."""
        return _extreme(np.nanmin, self._numbers())

    def max(self) -> float | None:
        """Return the largest number, or None if there is none."""
        return _extreme(np.nanmax, self._numbers())

    # --- new columns ---

    def as_text(self) -> Column:
        """Convert every cell to text."""
        return self._with(conversion.to_text(self.cells))

    def as_number(self, decimal: str | None = None) -> Column:
        """Convert texts that are numbers; other cells stay."""
        sign = self.notation.decimal if decimal is None else decimal
        if sign not in (".", ","):
            raise Misuse('as_number: decimal must be "." or ","')
        return self._with(conversion.to_number(conversion.trimmed(self.cells), sign))

    def as_date(self, day_first: bool | None = None) -> Column:
        """Convert texts that are dates; other cells stay."""
        order = self.notation.day_first if day_first is None else day_first
        epoch_1904 = self.notation.preference.epoch_1904
        cells = conversion.trimmed(self.cells)
        return self._with(conversion.to_date(cells, day_first=order, epoch_1904=epoch_1904))

    def as_bool(self) -> Column:
        """Convert yes and no, true and false, 1 and 0 to booleans; other cells stay."""
        return self._with(conversion.to_boolean(self.cells))

    def strip(self, characters: str = conversion.SPACES) -> Column:
        """Remove whitespace, or the given characters, from both ends of texts."""
        return self._texts(lambda text: text.str.strip_chars(characters))

    def squeeze(self) -> Column:
        """Collapse whitespace to single spaces, and remove it from both ends of texts."""
        spaces = r"[\s\x{a0}\x{202f}]+"
        return self._texts(lambda text: text.str.replace_all(spaces, " ").str.strip_chars())

    def upper(self) -> Column:
        """Convert texts to upper case."""
        return self._texts(lambda text: text.str.to_uppercase())

    def lower(self) -> Column:
        """Convert texts to lower case."""
        return self._texts(lambda text: text.str.to_lowercase())

    def title(self) -> Column:
        """Capitalise each word of the texts."""
        return self._texts(lambda text: text.str.to_titlecase())

    def replace(
        self, old: str | Mapping[str, object], new: str = "", *, regex: bool = False
    ) -> Column:
        """Replace all occurrences in texts, or whole texts by the values of a mapping."""
        if isinstance(old, Mapping):
            return self._with(conversion.with_replaced(self.cells, old))
        if regex:
            new = re.sub(r"\\(\d+)", r"${\1}", new)  # group references in Python's syntax
        made = self._texts(lambda text: text.str.replace_all(old, new, literal=not regex))
        return self._rewritten(made) if regex or _is_notation(old + new) else made

    def extract(self, pattern: str, group: int = 1) -> Column:
        """Keep the match of a group of a regular expression; empty if there is no match."""
        return self._rewritten(self._texts(lambda text: text.str.extract(pattern, group)))

    def pad_left(self, length: int, character: str = "0") -> Column:
        """Pad texts on the left to a length."""
        return self._texts(lambda text: text.str.pad_start(length, character))

    def fill_empty(self, value: object) -> Column:
        """Replace empty cells by a value."""
        return self.where(~self.is_empty(), value)

    def where(self, mask: Mask, otherwise: object = None) -> Column:
        """Keep the marked cells; replace the others by a value or by another column's cells."""
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
        """Replace each value by a mapping or a function, called once for each distinct text.

        Empty cells and errors stay, and so do values that are not in the mapping.
        """
        if isinstance(change, Mapping):
            held = change
            made = self._with(CellArray.of([held.get(value, value) for value in self.values]))
            return self._rewritten(made)
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
        return self._rewritten(self._with(CellArray.of(changed)))

    def round(self, digits: int = 0) -> Column:
        """Round numbers half away from zero, as spreadsheets do."""
        scale = 10.0**digits
        numbers = self._numbers()
        with np.errstate(over="ignore"):  # a number that is too large to scale stays as it is
            rounded = np.sign(numbers) * np.floor(np.abs(numbers) * scale + 0.5 + 1e-9) / scale
        return self._computed(rounded).where(Mask(np.isfinite(rounded)), self)

    def shift(self, rows: int = 1) -> Column:
        """Move every cell down by this many rows; the first cells become empty."""
        source = np.arange(len(self)) - rows
        inside = (source >= 0) & (source < len(self))
        taken = np.clip(source, 0, max(len(self) - 1, 0))
        moved = CellArray(
            self.cells.kinds[taken], self.cells.numbers[taken], self.cells.text.gather(taken)
        )
        return self._with(moved).where(Mask(inside))

    def cumulative_sum(self) -> Column:
        """Return the running total of the numbers."""
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

    # --- issues and export ---

    def issues_where(
        self, mask: Mask, code: str, severity: str = "error", message: str = ""
    ) -> Issues:
        """Report an issue for the marked cells; the message must not hold a cell's value."""
        return Issues(Issue(code, severity, message), self._fitting(mask))

    def to_polars(self) -> pl.Series:
        """Return a polars series: of numbers or dates if all cells are, else of texts."""
        kinds = set(np.unique(self.cells.kinds).tolist()) - {CellKind.EMPTY, CellKind.NO_VALUE}
        if kinds == {CellKind.NUMBER}:
            return pl.Series(self.cells.numbers, nan_to_null=True)
        if kinds == {CellKind.DATE}:
            return conversion.moments(self.cells.numbers)
        return self._text()


def _matching(text: pl.Series, pattern: str, whole: str | None) -> pl.Series:
    """Search with polars; a pattern with look-around or back-references needs Python's `re`."""
    try:
        return text.str.contains(pattern)
    except pl.exceptions.ComputeError:
        try:
            expression = re.compile(pattern if whole is None else whole)
        except re.error:
            raise Misuse("this is not a valid regular expression") from None
    found = expression.search if whole is None else expression.fullmatch
    answers = {one: found(one) is not None for one in text.drop_nulls().unique().to_list()}
    return pl.Series(
        [None if one is None else answers[one] for one in text.to_list()], dtype=pl.Boolean
    )


def _is_notation(text: str) -> bool:
    """Return whether replacing a text may change how dates or numbers are written."""
    return re.search(r"[\d.,/-]", text) is not None


def _extreme(choose: Callable[[Any], Any], numbers: Any) -> float | None:
    return float(choose(numbers)) if np.isfinite(numbers).any() else None
