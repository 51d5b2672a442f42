"""Build blocks of columns from cells that arrive row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ade_engine.errors import DamagedFile, TooLarge
from ade_engine.sheets.arrays import ByteArray, FloatArray, IntArray
from ade_engine.sheets.cells import Block, CellArray, CellKind, split_value
from ade_engine.sheets.coordinates import COLUMNS_MAX
from ade_engine.sheets.read_limits import ReadLimits

BLOCK_ROWS = 16_384
BLOCK_CELLS = 250_000  # a wide sheet fills a block before it has BLOCK_ROWS
DENSE_CELLS_MAX = 2_000_000  # of a block's rectangle: two distant cells must not make a huge one
GAP_ROWS = 2_048  # a longer gap ends a block


NO_TEXT = -1


@dataclass(slots=True)
class CellBatch:
    """Some cells in the order of the file: every array has one element for each cell.

    An element of `texts` is `NO_TEXT`, an index into the workbook's shared strings, or, from the
    number of shared strings on, an index into `own_texts`.
    """

    rows: IntArray
    columns: IntArray
    kinds: ByteArray
    numbers: FloatArray
    texts: IntArray
    own_texts: pl.Series
    hidden_rows: list[int]
    last_row: int
    marked_columns: frozenset[tuple[int, int]] = frozenset()
    """Columns with a number whose format says more than its value, and which mark it has."""


class BlockBuilder:
    """Turn batches of cells into blocks, in the order of the rows."""

    def __init__(self, shared: pl.Series | None = None) -> None:
        """Take the workbook's shared strings, followed by one null."""
        self._shared = with_null([]) if shared is None else shared
        self._shared_count = len(self._shared) - 1
        self._waiting: list[CellBatch] = []
        self._waiting_cells = 0
        self._last_row = 0

    def add(self, cells: CellBatch) -> Iterator[Block]:
        """Add whole rows and yield the blocks that are full."""
        if not len(cells.rows):
            return
        self._waiting.append(cells)
        self._waiting_cells += len(cells.rows)
        span = cells.rows[-1] - self._waiting[0].rows[0]
        if self._waiting_cells >= BLOCK_CELLS or span >= BLOCK_ROWS:
            yield from self.flush()

    def flush(self) -> Iterator[Block]:
        """Yield blocks of the cells that remain."""
        if not self._waiting:
            return
        cells = _joined(self._waiting, self._shared_count)
        self._waiting, self._waiting_cells = [], 0
        if (np.diff(cells.rows) < 0).any():
            cells = _sorted(cells)
        if cells.rows[0] <= self._last_row:
            raise DamagedFile("the rows of a sheet are not in order")
        self._last_row = int(cells.rows[-1])
        own = with_null([cells.own_texts])
        ends = np.flatnonzero(np.diff(cells.rows) > GAP_ROWS) + 1
        for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(cells.rows)], strict=True):
            yield from self._blocks(cells, own, start, end)

    def _blocks(self, cells: CellBatch, own: pl.Series, start: int, end: int) -> Iterator[Block]:
        """Split the cells until the rectangle of a block is small enough, then build it."""
        rows = cells.rows[start:end]
        first, last = int(rows[0]), int(rows[-1])
        used = np.zeros(COLUMNS_MAX + 1, np.bool_)
        used[cells.columns[start:end]] = True
        numbers = np.flatnonzero(used)
        height = last - first + 1
        too_large = height > 2 * BLOCK_ROWS or height * len(numbers) > DENSE_CELLS_MAX
        if height > 1 and too_large:
            middle = start + int(np.searchsorted(rows, first + height // 2))
            if start < middle < end:
                yield from self._blocks(cells, own, start, middle)
                yield from self._blocks(cells, own, middle, end)
                return
        slots = np.zeros(COLUMNS_MAX + 1, np.int64)
        slots[numbers] = np.arange(len(numbers)) * height
        at = slots[cells.columns[start:end]] + (rows - first)
        yield Block(
            first, height, self._columns(cells, own, slice(start, end), at, numbers, height)
        )

    def _columns(
        self,
        cells: CellBatch,
        own: pl.Series,
        chosen: slice,
        at: IntArray,
        numbers: IntArray,
        height: int,
    ) -> dict[int, CellArray]:
        size = len(numbers) * height
        kinds = np.zeros(size, np.uint8)  # EMPTY
        values = np.full(size, np.nan)
        texts = np.full(size, NO_TEXT, np.int64)
        kinds[at] = cells.kinds[chosen]
        values[at] = cells.numbers[chosen]
        texts[at] = cells.texts[chosen]
        columns = {}
        for index, number in enumerate(numbers.tolist()):
            part = slice(index * height, (index + 1) * height)
            columns[number] = CellArray(kinds[part], values[part], self._text(texts[part], own))
        return columns

    def _text(self, indexes: IntArray, own: pl.Series) -> pl.Series:
        """Look texts up in the shared strings, in the batch's own texts, or in both."""
        highest, count = int(indexes.max()), self._shared_count
        if highest == NO_TEXT:
            return no_text(len(indexes))
        if highest < count:
            return _gather(self._shared, indexes)
        if not ((indexes >= 0) & (indexes < count)).any():
            return _gather(own, np.maximum(indexes - count, NO_TEXT))
        is_own = indexes >= count
        from_own = _gather(own, np.where(is_own, indexes - count, NO_TEXT))
        from_shared = _gather(self._shared, np.where(is_own, NO_TEXT, indexes))
        return from_own.zip_with(pl.Series(is_own), from_shared)


def no_text(height: int) -> pl.Series:
    """Return a column of nulls."""
    return pl.Series([None], dtype=pl.String).new_from_index(0, height)


def _gather(texts: pl.Series, indexes: IntArray) -> pl.Series:
    """Look texts up by index; `NO_TEXT` selects the last one, which is null."""
    return texts.gather(np.where(indexes < 0, len(texts) - 1, indexes).astype(np.uint32))


def with_null(parts: list[pl.Series]) -> pl.Series:
    """Concatenate texts and append the null that `NO_TEXT` selects."""
    return pl.concat([*parts, pl.Series([None], dtype=pl.String)], rechunk=True)


def _joined(parts: list[CellBatch], shared_count: int) -> CellBatch:
    if len(parts) == 1:
        return parts[0]
    offset, texts = 0, []
    for part in parts:
        own = part.texts >= shared_count
        texts.append(np.where(own, part.texts + offset, part.texts) if offset else part.texts)
        offset += len(part.own_texts)
    return CellBatch(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.kinds for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate(texts),
        pl.concat([part.own_texts for part in parts], rechunk=True),
        [],
        parts[-1].last_row,
    )


def _sorted(cells: CellBatch) -> CellBatch:
    order = np.argsort(cells.rows, kind="stable")
    return CellBatch(
        cells.rows[order],
        cells.columns[order],
        cells.kinds[order],
        cells.numbers[order],
        cells.texts[order],
        cells.own_texts,
        [],
        cells.last_row,
    )


# --- from Python values, for formats without a fast reader ----------------------------------------

BATCH_CELLS = 100_000

RowOfValues = tuple[int, dict[int, object]]


class NoValue:
    """The value of a formula whose result is not in the file."""


NO_VALUE = NoValue()


def build_blocks(rows: Iterable[RowOfValues], limits: ReadLimits) -> Iterator[Block]:
    """Build blocks from rows in ascending order: (row number, {column number: value})."""
    builder = BlockBuilder()
    count = 0
    for cells in _batches(rows):
        count += len(cells.rows)
        if count > limits.cells_max:
            raise TooLarge(f"a sheet has more than {limits.cells_max} cells (cells_max)")
        yield from builder.add(cells)
    yield from builder.flush()


def _batches(rows: Iterable[RowOfValues]) -> Iterator[CellBatch]:
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
