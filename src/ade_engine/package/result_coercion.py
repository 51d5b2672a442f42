"""Convert what `transform_column` returned to cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from ade_engine.package.author_errors import Misuse
from ade_engine.package.column_core import ColumnCore
from ade_engine.sheets.cells import CellArray, CellKind


def cells_of_result(made: object, height: int) -> CellArray:
    """Convert a column, a series, an array or a list to as many cells as it must have."""
    if isinstance(made, ColumnCore):
        cells = made.cells
    elif isinstance(made, pl.Series):
        cells = _cells_of_series(made)
    elif isinstance(made, np.ndarray):
        cells = _cells_of_series(pl.Series(made))
    elif isinstance(made, list | tuple):
        cells = _cells_of_values(made)
    else:
        raise Misuse("transform_column must return a column, or a list with a value for each cell")
    if len(cells) != height:
        raise Misuse(f"transform_column received {height} cells and returned {len(cells)}")
    return cells


def _cells_of_values(values: Iterable[object]) -> CellArray:
    try:
        return CellArray.of(values)
    except (TypeError, ValueError):
        raise Misuse(
            "a cell can hold text, a number, True or False, a date, a time or None"
        ) from None


def _cells_of_series(series: pl.Series) -> CellArray:
    height, dtype = len(series), series.dtype
    if dtype == pl.String:
        kinds = np.where(series.is_null().to_numpy(), np.uint8(0), np.uint8(CellKind.TEXT))
        return CellArray(kinds, np.full(height, np.nan), series)
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
    return CellArray(
        kinds, np.where(np.isfinite(plain), plain, np.nan), CellArray.empty(height).text
    )
