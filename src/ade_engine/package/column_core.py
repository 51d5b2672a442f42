"""The internals of `Column`: holding cells, finding empty ones, comparing, computing."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import polars as pl

from ade_engine.package import conversion
from ade_engine.package.author_errors import Misuse
from ade_engine.package.header_parts import header_parts
from ade_engine.package.mask import Mask
from ade_engine.package.notation import FixedNotation, Notation, NotationOfCells, Preference
from ade_engine.sheets.cells import CellArray, CellKind, date_ms

Text = Callable[[pl.Series], pl.Series]
Compare = Callable[[Any, Any], Any]


class ColumnCore:
    """Cells of one column with its header, letters and field, and internal operations."""

    __slots__ = ("cells", "field", "header", "letter", "notation")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        cells: CellArray | Iterable[object],
        *,
        header: str = "",
        letter: str = "",
        field: str | None = None,
        decimal: str | None = None,
        day_first: bool | None = None,
        notation: Notation | None = None,
    ) -> None:
        self.cells = cells if isinstance(cells, CellArray) else CellArray.of(cells)
        self.header = header
        self.letter = letter
        self.field = field
        self.notation = notation or NotationOfCells(self.cells, Preference(decimal, day_first))

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def unit(self) -> str | None:
        """Return the unit that the header names, such as EUR, % or kg; None if it names none."""
        return header_parts(self.header).unit

    def is_empty(self) -> Mask:
        """Mark empty cells, blank texts and formulas without a result."""
        empty = self.cells.is_kind(CellKind.EMPTY, CellKind.NO_VALUE)
        if not self._written().any():
            return Mask(empty)
        blank = self.cells.text.str.strip_chars(conversion.SPACES) == ""
        return Mask(pl.Series(empty) | blank.fill_null(False))

    def _with(self, cells: CellArray) -> Self:
        made = type(self).__new__(type(self))
        made.cells = cells
        made.header, made.letter, made.field = self.header, self.letter, self.field
        made.notation = self.notation
        return made

    def _written(self) -> Any:
        return self.cells.is_kind(CellKind.TEXT)

    def _text(self) -> pl.Series:
        """Return every cell as text; null if it is empty or an error."""
        cells = conversion.to_text(self.cells)
        written = cells.is_kind(CellKind.TEXT)
        filled = cells.text.set(cells.text == "", None) if written.any() else cells.text
        if not cells.is_kind(CellKind.ERROR).any():
            return filled
        return filled.set(pl.Series(~written), None)

    def fingerprints(self) -> pl.Series:
        """Return a 64-bit hash of each value; null if the cell is empty."""
        kinds = self.cells.kinds.astype(np.uint64)
        prints = (self.cells.numbers + 0.0).view(np.uint64)  # -0.0 becomes 0.0
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

    def _operand(self, other: ColumnCore | float) -> Any:
        if isinstance(other, ColumnCore):
            return self._same_length(other)._numbers()
        if not isinstance(other, int | float):
            raise Misuse("arithmetic needs a column or a number")
        return other

    def _computed(self, numbers: Any) -> Self:
        known = np.isfinite(numbers)
        fresh = CellArray(
            np.where(known, np.uint8(CellKind.NUMBER), np.uint8(CellKind.EMPTY)),
            np.where(known, numbers, np.nan),
            CellArray.empty(len(self)).text,
        )
        return self._with(fresh)

    def _texts(self, change: Text) -> Self:
        if not self._written().any():
            return self
        return self._with(conversion.with_texts(self.cells, change(self.cells.text)))

    def _rewritten(self, made: Self) -> Self:
        """Return a column whose texts an author changed: its former notation may be wrong."""
        made.notation = FixedNotation(self.notation.preference)
        return made

    def _answer(self, marks: Any) -> Mask:
        empty = self.is_empty().series
        series = pl.Series(marks)
        return Mask(series.set(empty, None) if empty.any() else series)

    def _compared(self, other: object, compare: Compare) -> Mask:
        if isinstance(other, ColumnCore):
            return self._compared_columns(self._same_length(other), compare)
        if isinstance(other, str):
            text = self.cells.text if compare is operator.eq else self._text()
            return self._known(compare(text, other), self.cells.is_kind(CellKind.TEXT), compare)
        kind, number = _kind_and_number(other)
        here = self.cells.is_kind(kind)
        with np.errstate(invalid="ignore"):
            return self._known(pl.Series(compare(self.cells.numbers, number)), here, compare)

    def _compared_columns(self, other: ColumnCore, compare: Compare) -> Mask:
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
        """Set cells of another kind to null; for equality, to false."""
        if not comparable.all():
            instead = False if compare is operator.eq else None
            result = result.set(pl.Series(~comparable), instead)
        return self._answer(result)

    def _fitting(self, mask: object) -> Mask:
        if not isinstance(mask, Mask):
            raise Misuse("a mask is needed here, such as column.matches(...) or column > 0")
        if len(mask) != len(self):
            raise Misuse(f"the mask has {len(mask)} cells, the column has {len(self)}")
        return mask

    def _same_length(self, other: ColumnCore) -> ColumnCore:
        if len(other) != len(self):
            raise Misuse(f"the other column has {len(other)} cells, this one has {len(self)}")
        return other


def _kind_and_number(value: object) -> tuple[CellKind, float]:
    if isinstance(value, bool):
        return CellKind.BOOL, float(value)
    if isinstance(value, int | float):
        return CellKind.NUMBER, float(value)
    if isinstance(value, dt.date | dt.time):
        return CellKind.DATE, date_ms(value)
    raise Misuse("a column can be compared with a column, a text, a number, a date or a boolean")
