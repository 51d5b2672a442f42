"""The column that an author's functions see: some cells of one column, worked on all at once.

Text operations touch only the cells that hold text, arithmetic only those that hold numbers; other
cells stay as they are. Nothing changes in place: every operation gives a new column.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from ade_engine.package import conversion
from ade_engine.package.issues import Issue, Issues
from ade_engine.package.mask import Mask
from ade_engine.package.misuse import Misuse
from ade_engine.sheets.cells import CellKind, date_ms
from ade_engine.sheets.cells import Column as Cells

Text = Callable[[pl.Series], pl.Series]
Compare = Callable[[Any, Any], Any]


class Column:
    """Some consecutive cells of one column of a table.

    `header` is the text above it, `letter` its place in the sheet, `field` the field it was mapped
    to, if it was.
    """

    __slots__ = ("cells", "day_first", "decimal", "field", "header", "letter")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        cells: Cells | Iterable[object],
        *,
        header: str = "",
        letter: str = "",
        field: str | None = None,
        decimal: str = ".",
        day_first: bool = False,
    ) -> None:
        self.cells = cells if isinstance(cells, Cells) else Cells.of(cells)
        self.header = header
        self.letter = letter
        self.field = field
        self.decimal = decimal
        self.day_first = day_first

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[object]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"<Column {self.field or self.letter or ''} of {len(self)} cells>"  # never a value

    @property
    def values(self) -> list[object]:
        """Give the cells as Python values, None for an empty one; slow for many cells."""
        return self.cells.values()

    # --- questions that give masks ---

    def is_empty(self) -> Mask:
        """Mark empty cells, blank texts and formulas without a value."""
        empty = self.cells.is_kind(CellKind.EMPTY, CellKind.NO_VALUE)
        if not self._written().any():
            return Mask(empty)
        blank = self.cells.text.str.strip_chars(conversion.SPACES) == ""
        return Mask(pl.Series(empty) | blank.fill_null(False))

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
        wanted = Cells.of(values)
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
        """Give the share of cells that match, empty ones left out."""
        return self.matches(pattern).share

    def share_in(self, values: Iterable[object]) -> float:
        """Give the share of cells that hold one of these values, empty ones left out."""
        return self.is_in(values).share

    def share_numbers(self) -> float:
        """Give the share of cells that are, or can be read as, numbers."""
        return self.as_number().is_number().share

    def share_dates(self) -> float:
        """Give the share of cells that are, or can be read as, dates."""
        return self.as_date().is_date().share

    def share_distinct(self) -> float:
        """Give the number of different values for each cell that is not empty."""
        filled = self.fingerprints().drop_nulls()
        return filled.n_unique() / filled.len() if filled.len() else 0.0

    def filled(self) -> int:
        """Count the cells that are not empty."""
        return len(self) - self.is_empty().count

    def sum(self) -> float:
        """Add up the numbers."""
        return float(np.nansum(self._numbers()))

    def min(self) -> float | None:
        """Give the least number."""
        return _extreme(np.nanmin, self._numbers())

    def max(self) -> float | None:
        """Give the greatest number."""
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
            one = Cells.of([otherwise])
            other = Cells(
                np.repeat(one.kinds, len(self)),
                np.repeat(one.numbers, len(self)),
                one.text.new_from_index(0, len(self)),
            )
        return self._with(
            Cells(
                np.where(keep, self.cells.kinds, other.kinds),
                np.where(keep, self.cells.numbers, other.numbers),
                self.cells.text.zip_with(pl.Series(keep), other.text),
            )
        )

    def map(self, change: Mapping[Any, Any] | Callable[[Any], Any]) -> Column:
        """Change each value by a mapping or a function, called once for each different text.

        Empty cells stay empty; a value that a mapping does not hold stays as it is.
        """
        if isinstance(change, Mapping):
            held = change
            return self._with(Cells.of([held.get(value, value) for value in self.values]))
        known: dict[str, object] = {}
        changed = []
        for value in self.values:
            if isinstance(value, str):
                if value not in known:
                    known[value] = change(value)
                changed.append(known[value])
            else:
                changed.append(None if value is None else change(value))
        return self._with(Cells.of(changed))

    def round(self, digits: int = 0) -> Column:
        """Round numbers half away from zero, as spreadsheets do."""
        scale = 10.0**digits
        numbers = self._numbers()
        rounded = np.sign(numbers) * np.floor(np.abs(numbers) * scale + 0.5 + 1e-9) / scale
        return self._computed(rounded, keep_others=True)

    def shift(self, rows: int = 1) -> Column:
        """Move every cell so many rows down; the first ones become empty."""
        source = np.arange(len(self)) - rows
        inside = (source >= 0) & (source < len(self))
        taken = np.clip(source, 0, max(len(self) - 1, 0))
        moved = Cells(
            self.cells.kinds[taken], self.cells.numbers[taken], self.cells.text.gather(taken)
        )
        return self._with(moved).where(Mask(inside))

    def cumulative_sum(self) -> Column:
        """Add up the numbers from the top to each cell."""
        return self._computed(np.cumsum(np.nan_to_num(self._numbers())))

    def __add__(self, other: Column | float) -> Column:
        return self._computed(self._numbers() + self._operand(other))

    def __sub__(self, other: Column | float) -> Column:
        return self._computed(self._numbers() - self._operand(other))

    def __mul__(self, other: Column | float) -> Column:
        return self._computed(self._numbers() * self._operand(other))

    def __truediv__(self, other: Column | float) -> Column:
        with np.errstate(divide="ignore", invalid="ignore"):
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
        """Give the cells as a polars series: of numbers or dates if all are, else of texts."""
        kinds = set(np.unique(self.cells.kinds).tolist()) - {CellKind.EMPTY, CellKind.NO_VALUE}
        if kinds == {CellKind.NUMBER}:
            return pl.Series(self.cells.numbers, nan_to_null=True)
        if kinds == {CellKind.DATE}:
            return conversion.moments(self.cells.numbers)
        return self._text()

    # --- the rest is the engine's own ---

    def _with(self, cells: Cells) -> Column:
        made = Column.__new__(Column)
        made.cells = cells
        made.header, made.letter, made.field = self.header, self.letter, self.field
        made.decimal, made.day_first = self.decimal, self.day_first
        return made

    def _written(self) -> Any:
        return self.cells.is_kind(CellKind.TEXT)

    def _text(self) -> pl.Series:
        """Give every cell as it would be written; null where it is empty or an error."""
        cells = conversion.to_text(self.cells)
        written = cells.is_kind(CellKind.TEXT)
        filled = cells.text.set(cells.text == "", None) if written.any() else cells.text
        if not cells.is_kind(CellKind.ERROR).any():
            return filled
        return filled.set(pl.Series(~written), None)

    def fingerprints(self) -> pl.Series:
        """Give one number for each different value, null where a cell is empty."""
        kinds = self.cells.kinds.astype(np.uint64)
        prints = (self.cells.numbers + 0.0).view(np.uint64)  # -0.0 is 0.0
        if self._written().any() or self.cells.is_kind(CellKind.ERROR).any():
            prints = np.where(np.isnan(self.cells.numbers), self.cells.text.hash(seed=0), prints)
        mixed = pl.Series(prints * np.uint64(0x9E3779B97F4A7C15) + kinds)
        empty = self.is_empty().series
        return mixed.set(empty, None) if empty.any() else mixed

    def _numbers(self) -> Any:
        numbers = self.cells.kinds == CellKind.NUMBER
        return (
            self.cells.numbers if numbers.all() else np.where(numbers, self.cells.numbers, np.nan)
        )

    def _operand(self, other: Column | float) -> Any:
        if isinstance(other, Column):
            return self._same_length(other)._numbers()
        if not isinstance(other, int | float):
            raise Misuse("columns are computed with columns and numbers")
        return other

    def _computed(self, numbers: Any, *, keep_others: bool = False) -> Column:
        known = np.isfinite(numbers)
        fresh = Cells(
            np.where(known, np.uint8(CellKind.NUMBER), np.uint8(CellKind.EMPTY)),
            np.where(known, numbers, np.nan),
            Cells.empty(len(self)).text,
        )
        made = self._with(fresh)
        return made.where(Mask(known), self) if keep_others else made

    def _texts(self, change: Text) -> Column:
        if not self._written().any():
            return self
        return self._with(conversion.with_texts(self.cells, change(self.cells.text)))

    def _answer(self, marks: Any) -> Mask:
        empty = self.is_empty().series
        series = pl.Series(marks)
        return Mask(series.set(empty, None) if empty.any() else series)

    def _compared(self, other: object, compare: Compare) -> Mask:
        if isinstance(other, Column):
            return self._compared_columns(self._same_length(other), compare)
        if isinstance(other, str):
            text = self.cells.text if compare is operator.eq else self._text()
            return self._known(compare(text, other), self.cells.is_kind(CellKind.TEXT), compare)
        kind, number = _kind_and_number(other)
        here = self.cells.is_kind(kind)
        with np.errstate(invalid="ignore"):
            return self._known(pl.Series(compare(self.cells.numbers, number)), here, compare)

    def _compared_columns(self, other: Column, compare: Compare) -> Mask:
        same_kind = self.cells.kinds == other.cells.kinds
        texts = self.cells.is_kind(CellKind.TEXT)
        with np.errstate(invalid="ignore"):
            result = pl.Series(compare(self.cells.numbers, other.cells.numbers))
        if texts.any():
            compared = compare(self.cells.text, other.cells.text)
            result = compared.zip_with(pl.Series(texts), result)
        both = ~(self.is_empty() | other.is_empty()).series
        known = self._known(result, same_kind, compare)
        return Mask(known.series.set(~both, None))

    def _known(self, result: pl.Series, comparable: Any, compare: Compare) -> Mask:
        """Leave cells of another kind without an answer; for equality they are simply not equal."""
        if not comparable.all():
            instead = False if compare is operator.eq else None
            result = result.set(pl.Series(~comparable), instead)
        return self._answer(result)

    def _fitting(self, mask: object) -> Mask:
        if not isinstance(mask, Mask):
            raise Misuse("a mask is wanted here, such as column.matches(...) or column > 0")
        if len(mask) != len(self):
            raise Misuse(f"the mask is of {len(mask)} cells, the column of {len(self)}")
        return mask

    def _same_length(self, other: Column) -> Column:
        if len(other) != len(self):
            raise Misuse(f"the other column is of {len(other)} cells, this one of {len(self)}")
        return other


def cells_of(made: object, height: int) -> Cells:
    """Take what a function made of a column: a column, a series, an array or a list."""
    if isinstance(made, Column):
        cells = made.cells
    elif isinstance(made, pl.Series):
        cells = _cells_of_series(made)
    elif isinstance(made, np.ndarray):
        cells = _cells_of_series(pl.Series(made))
    elif isinstance(made, list | tuple):
        cells = _cells_of_values(made)
    else:
        raise Misuse("transform_column gives back a column, or a list with a value for each cell")
    if len(cells) != height:
        raise Misuse(f"transform_column got {height} cells and gave back {len(cells)}")
    return cells


def _cells_of_values(values: Iterable[object]) -> Cells:
    try:
        return Cells.of(values)
    except (TypeError, ValueError):
        raise Misuse(
            "a cell holds text, a number, True or False, a date, a time or nothing (None)"
        ) from None


def _cells_of_series(series: pl.Series) -> Cells:
    height, dtype = len(series), series.dtype
    if dtype == pl.String:
        kinds = np.where(series.is_null().to_numpy(), np.uint8(0), np.uint8(CellKind.TEXT))
        return Cells(kinds, np.full(height, np.nan), series)
    if dtype in (pl.Date, pl.Datetime):
        kind, numbers = CellKind.DATE, series.cast(pl.Datetime("ms")).dt.epoch("ms")
    elif dtype == pl.Boolean:
        kind, numbers = CellKind.BOOL, series
    elif dtype.is_numeric():
        kind, numbers = CellKind.NUMBER, series
    else:
        return _cells_of_values(series.to_list())
    plain = numbers.cast(pl.Float64).to_numpy()
    kinds = np.where(np.isfinite(plain), np.uint8(kind), np.uint8(CellKind.EMPTY))
    return Cells(kinds, np.where(np.isfinite(plain), plain, np.nan), Cells.empty(height).text)


def _kind_and_number(value: object) -> tuple[CellKind, float]:
    if isinstance(value, bool):
        return CellKind.BOOL, float(value)
    if isinstance(value, int | float):
        return CellKind.NUMBER, float(value)
    if isinstance(value, dt.date | dt.time):
        return CellKind.DATE, date_ms(value)
    raise Misuse("a column is compared with a column, a text, a number, a date or a truth value")


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
