"""Convert cells to Python values and back, vectorised where all cells are of one kind."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl

from ade_engine.package.conversion import moments
from ade_engine.sheets.cells import (
    DAY_MS,
    INTEGERS_MAX,
    TIME_DAY_MS,
    CellArray,
    CellError,
    CellKind,
)

NOTHING = type(None)


def values_of(cells: CellArray) -> list[Any]:
    """Return the cells as Python values, None if they are empty or an error."""
    kinds = set(np.unique(cells.kinds).tolist()) - {CellKind.EMPTY, CellKind.NO_VALUE}
    if kinds <= {CellKind.TEXT}:
        return cells.text.to_list()
    if kinds == {CellKind.NUMBER}:
        return _numbers(cells)
    if kinds == {CellKind.BOOL}:
        return pl.Series(cells.numbers, nan_to_null=True).cast(pl.Boolean).to_list()
    if kinds == {CellKind.DATE} and (dates := _dates(cells)) is not None:
        return dates
    if CellKind.ERROR not in kinds:
        return cells.values()
    return [None if isinstance(value, CellError) else value for value in cells.values()]


def _numbers(cells: CellArray) -> list[Any]:
    numbers = cells.numbers
    known = cells.is_kind(CellKind.NUMBER)
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < INTEGERS_MAX)
    if whole[known].all():
        integers = pl.Series(np.where(known, numbers, 0).astype(np.int64))
        return (
            integers.to_list() if known.all() else integers.set(pl.Series(~known), None).to_list()
        )
    if not known.all():
        return cells.values()
    return [
        int(one) if is_whole else one
        for one, is_whole in zip(numbers.tolist(), whole.tolist(), strict=True)
    ]


def _dates(cells: CellArray) -> list[Any] | None:
    """Return dates, or datetimes if all have a time of day; None for a mixture."""
    numbers = cells.numbers[cells.is_kind(CellKind.DATE)]
    if ((numbers >= TIME_DAY_MS) & (numbers < TIME_DAY_MS + DAY_MS)).any():
        return None
    with_clock = np.mod(numbers, DAY_MS) != 0
    if not with_clock.any():
        return moments(cells.numbers).cast(pl.Date).to_list()
    return moments(cells.numbers).to_list() if with_clock.all() else None


def cells_of_values(values: list[Any]) -> CellArray | None:
    """Convert values to cells; None if a cell cannot hold one of them."""
    types = set(map(type, values))
    try:
        if types <= {str, NOTHING}:
            return _texts(pl.Series(values, dtype=pl.String))
        if types <= {int, float, NOTHING}:
            return _marked(CellKind.NUMBER, pl.Series(values, dtype=pl.Float64, strict=False))
        if types <= {dt.date, NOTHING} or types <= {dt.datetime, NOTHING}:
            return _marked(CellKind.DATE, pl.Series(values).cast(pl.Datetime("ms")).dt.epoch("ms"))
        return CellArray.of(values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return None


def _texts(text: pl.Series) -> CellArray:
    kinds = np.where(text.is_null().to_numpy(), np.uint8(0), np.uint8(CellKind.TEXT))
    return CellArray(kinds, np.full(len(text), np.nan), text)


def _marked(kind: CellKind, numbers: pl.Series) -> CellArray:
    plain = numbers.cast(pl.Float64).to_numpy()
    known = np.isfinite(plain)
    kinds = np.where(known, np.uint8(kind), np.uint8(CellKind.EMPTY))
    return CellArray(kinds, np.where(known, plain, np.nan), CellArray.empty(len(plain)).text)
