"""Convert cells to columns with one type each, for formats that have types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ade_engine.package.conversion import to_text
from ade_engine.sheets.arrays import BoolArray
from ade_engine.sheets.cells import DAY_MS, INTEGERS_MAX, TIME_DAY_MS, CellArray, CellKind

MOMENTS = "%Y-%m-%dT%H:%M:%S"
MOMENTS_WITH_MS = "%Y-%m-%dT%H:%M:%S%.3f"
# Programs that open a CSV file take such a text for a formula. A sign before a mere number, as in
# a telephone number, does no harm.
FORMULA_LIKE = r"(?s)^(?:[=@\t\r\n＝＋－＠]|[+-].*[^\d\s().,/+-])"

_SPOOLED: dict[str, pl.DataType | type[pl.DataType]] = {
    "number": pl.Float64,
    "integer": pl.Int64,
    "boolean": pl.Boolean,
    "date": pl.Datetime("ms"),
}


@dataclass
class TypedColumn:
    """One column of the output: its name, and the type that all of its cells have.

    A cell that does not fit is null; `misfits` counts those, and their texts are kept for CSV.
    """

    name: str
    title: str
    type: str = "any"
    misfits: int = 0
    formulas: int = 0
    has_times: bool = False
    has_ms: bool = False

    @property
    def is_text(self) -> bool:
        """Return whether every cell is written as text."""
        return self.type not in _SPOOLED

    def series(self, cells: CellArray) -> tuple[pl.Series, pl.Series]:
        """Return the values, and the texts of the cells that do not fit."""
        texts = to_text(cells).text
        if self.is_text:
            wrong = cells.is_kind(CellKind.ERROR)
        else:
            fits = self._fits(cells)
            wrong = ~fits & ~cells.is_kind(CellKind.EMPTY, CellKind.NO_VALUE)
        self.misfits += int(wrong.sum())
        others = texts.set(pl.Series(~wrong), None)
        self.formulas += int((texts if self.is_text else others).str.contains(FORMULA_LIKE).sum())
        if self.is_text:
            return texts.set(pl.Series(wrong), None), others
        return self._values(cells, fits), others

    def _fits(self, cells: CellArray) -> BoolArray:
        numbers = cells.numbers
        match self.type:
            case "number":
                return cells.is_kind(CellKind.NUMBER) & np.isfinite(numbers)
            case "integer":
                whole = (numbers == np.floor(numbers)) & (np.abs(numbers) <= INTEGERS_MAX)
                fits: BoolArray = cells.is_kind(CellKind.NUMBER) & whole
                return fits
            case "boolean":
                return cells.is_kind(CellKind.BOOL)
        time_only = (numbers >= TIME_DAY_MS) & (numbers < TIME_DAY_MS + DAY_MS)
        return cells.is_kind(CellKind.DATE) & ~time_only

    def _values(self, cells: CellArray, fits: BoolArray) -> pl.Series:
        numbers = np.where(fits, cells.numbers, 0.0)
        if self.type == "date":
            self.has_times |= bool((numbers % DAY_MS != 0).any())
            self.has_ms |= bool((numbers % 1000 != 0).any())
        values = pl.Series(numbers)
        if self.type == "boolean":
            values = values == 1
        elif self.type in ("integer", "date"):
            values = values.cast(pl.Int64).cast(_SPOOLED[self.type])
        return values.set(pl.Series(~fits), None) if not fits.all() else values

    @property
    def moments(self) -> str:
        """Return how dates with times are written."""
        return MOMENTS_WITH_MS if self.has_ms else MOMENTS

    def exact(self, spooled: str) -> pl.Expr:
        """Return the column for Parquet: a date has no time if none of the column has one."""
        column = pl.col(spooled)
        return column.cast(pl.Date) if self.type == "date" and not self.has_times else column

    def written(self, spooled: str) -> pl.Expr:
        """Return the column for JSON lines: dates as texts (ISO 8601)."""
        if self.type != "date":
            return pl.col(spooled)
        return pl.col(spooled).dt.strftime(self.moments if self.has_times else "%Y-%m-%d")

    def printed(self, spooled: str, misfits: str, *, quote_formulas: bool) -> pl.Expr:
        """Return the column for CSV: texts, also those of cells that do not fit."""
        texts = pl.coalesce(self.written(spooled).cast(pl.String), pl.col(misfits))
        if not quote_formulas:
            return texts
        return (
            pl.when(texts.str.contains(FORMULA_LIKE) & self._may_be_formula(misfits))
            .then(pl.lit("'") + texts)
            .otherwise(texts)
        )

    def _may_be_formula(self, misfits: str) -> pl.Expr:
        """Return which cells hold a text of the input: a negative number is no formula."""
        return pl.lit(True) if self.is_text else pl.col(misfits).is_not_null()
