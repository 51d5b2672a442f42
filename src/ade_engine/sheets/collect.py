"""Collect cells that come one by one, as Python values, from readers that are not fast anyway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from ade_engine.errors import TooLarge
from ade_engine.sheets.block_builder import NO_TEXT, BlockBuilder, CellBatch
from ade_engine.sheets.cells import Block, CellKind, split_value
from ade_engine.sheets.coordinates import COLUMNS_MAX
from ade_engine.sheets.limits import Limits

BATCH_CELLS = 100_000

Row = tuple[int, dict[int, object]]


class NoValue:
    """The value of a formula that the file does not hold."""


NO_VALUE = NoValue()


def collect(rows: Iterable[Row], limits: Limits) -> Iterator[Block]:
    """Make blocks from rows in their order: each a number and its values by column."""
    assembler = BlockBuilder()
    count = 0
    for cells in _batches(rows):
        count += len(cells.rows)
        if count > limits.cells_max:
            raise TooLarge(f"a sheet has more than {limits.cells_max} cells (cells_max)")
        yield from assembler.add(cells)
    yield from assembler.flush()


def _batches(rows: Iterable[Row]) -> Iterator[CellBatch]:
    waiting: list[tuple[int, int, object]] = []
    for number, values in rows:
        for column, value in values.items():
            if value is not None and value != "":
                if column > COLUMNS_MAX:
                    raise TooLarge(f"a row has more than {COLUMNS_MAX} cells")
                waiting.append((number, column, value))
        if len(waiting) >= BATCH_CELLS:
            yield _cells(waiting)
            waiting = []
    yield _cells(waiting)


def _cells(found: list[tuple[int, int, object]]) -> CellBatch:
    split = [
        (CellKind.NO_VALUE, np.nan, None) if value is NO_VALUE else split_value(value)
        for _, _, value in found
    ]
    texts = [text for _, _, text in split]
    own = [text for text in texts if text is not None]
    indexes = np.full(len(texts), NO_TEXT, np.int64)
    indexes[[text is not None for text in texts]] = np.arange(len(own))
    return CellBatch(
        np.array([row for row, _, _ in found], np.int64),
        np.array([column for _, column, _ in found], np.int64),
        np.array([kind for kind, _, _ in split], np.uint8),
        np.array([number for _, number, _ in split], np.float64),
        indexes,
        pl.Series(own, dtype=pl.String),
        [],
        found[-1][0] if found else 0,
    )
