"""Read a sheet once and keep the rows that are needed to find its tables.

A long run of similar rows is data. The grid of a big sheet therefore holds only its first and last
rows and the unusual rows with their neighbours: rows with few cells, without a value where others
have one, with a word like `total`, or next to a blank row. All other rows count as data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray
from ade_engine.sheets.cells import Block, CellArray, CellKind
from ade_engine.sheets.coordinates import COLUMNS_MAX, Range
from ade_engine.tables.grid import Grid

SMALL_SHEET_ROWS = 1500  # a sheet of at most so many rows is kept whole
HEAD_ROWS = 400
END_ROWS = 60
NEIGHBOUR_ROWS = 6
BLANK_ROWS_KEPT = 3
CHUNK_ROWS = 256  # a row is unusual compared with so many rows
GRID_CELLS_MAX = 600_000  # from this size, or this many rows, on, only the last rows are added
GRID_ROWS_MAX = 20_000
GRID_COLUMNS_MAX = 256  # further columns are not used to find tables

_NUMBER_LIKE = r"^\s*[-+(]?\s?[$€£]?\s?\.?\d"
_TOTAL_ALONE = r"(?i)^\W*(?:(?:sub|grand|overall)[\s-]*)?totals?\W*$"
_TOTAL_LIKE = r"(?i)totals?\b"


class SheetCells(Protocol):
    """What the table finder needs from a sheet; `ade_engine.sheets.workbook.Sheet` has it."""

    @property
    def height(self) -> int:
        """Return the last used row."""

    @property
    def merged(self) -> list[Range]:
        """Return the merged ranges."""

    def blocks(self, first_row: int = 1, last_row: int | None = None) -> Iterator[Block]:
        """Yield the cells from `first_row` to `last_row`."""


@dataclass(frozen=True)
class SheetSample:
    """The rows of a sheet that were kept, and which rows and columns are in use."""

    grid: Grid
    holds_something: BoolArray  # by row, from row 1 on
    totals: IntArray  # rows outside the grid whose first text is just "total"
    columns_used: tuple[tuple[int, int, frozenset[int]], ...]  # first row, last row, columns

    def columns_within(self, first_row: int, last_row: int) -> set[int]:
        """Return the columns in use in the blocks that lie between two rows."""
        found: set[int] = set()
        for first, last, columns in self.columns_used:
            if first >= first_row and last <= last_row:
                found |= columns
        return found

    def columns_beyond(self, first_row: int, last_row: int) -> set[int]:
        """Return the columns in use between two rows that are beyond the columns of the grid."""
        edge = self.grid.columns[-1] if self.grid.width >= GRID_COLUMNS_MAX else COLUMNS_MAX
        found: set[int] = set()
        for first, last, columns in self.columns_used:
            if first <= last_row and last >= first_row:
                found |= {column for column in columns if column > edge}
        return found


def sample_sheet(sheet: SheetCells) -> SheetSample:
    """Read a sheet once and return its sample."""
    height = sheet.height
    sampler = _Sampler(height)
    for block in sheet.blocks():
        sampler.take(block)
    return sampler.result()


class _Sampler:
    """Collect the rows to keep, block by block."""

    def __init__(self, height: int) -> None:
        self._height = height
        self._next_row = 1
        self._cells = 0
        self._kept = 0
        self._totals: list[IntArray] = []
        self._rows: list[IntArray] = []
        self._parts: list[tuple[int, dict[int, CellArray]]] = []
        self._holds: list[tuple[int, BoolArray]] = []
        self._used: list[tuple[int, int, frozenset[int]]] = []

    def take(self, block: Block) -> None:
        """Keep the rows of a block that are needed."""
        self._skip_to(block.first_row)
        # Only the columns that are used: 16k columns must not cost 16k times as much.
        numbers = sorted(block.columns)[:GRID_COLUMNS_MAX]
        columns = {number: block.columns[number] for number in numbers}
        filled = _count(columns.values(), block.height)
        holds = filled > 0
        keep = self._choose(block, columns, filled)
        if keep.any():
            kept = {number: column.where(keep) for number, column in columns.items()}
            self._parts.append((int(keep.sum()), kept))
            self._rows.append(block.first_row + np.flatnonzero(keep))
        self._cells += int(keep.sum()) * len(columns)
        self._kept += int(keep.sum())
        if not keep.all():
            total = _is_total(columns, block.height) & ~keep
            self._totals.append(block.first_row + np.flatnonzero(total))
        self._holds.append((block.first_row, holds))
        self._used.append((block.first_row, block.last_row, frozenset(block.columns)))
        self._next_row = block.last_row + 1

    def _skip_to(self, row: int) -> None:
        """Keep a few of the blank rows between blocks."""
        blank = min(row - self._next_row, BLANK_ROWS_KEPT)
        if blank > 0:
            self._rows.append(np.arange(self._next_row, self._next_row + blank))
            self._parts.append((blank, {}))

    def _choose(self, block: Block, columns: dict[int, CellArray], filled: IntArray) -> BoolArray:
        blank = filled == 0
        keep: BoolArray = ~blank | (_run_lengths(blank) <= BLANK_ROWS_KEPT)
        if self._height <= SMALL_SHEET_ROWS:
            return keep
        rows = block.first_row + np.arange(block.height)
        ends: BoolArray = (rows <= HEAD_ROWS) | (rows > self._height - END_ROWS)
        odd = _odd(columns, filled)
        cells = max(GRID_CELLS_MAX - self._cells, 0)
        room = min(cells // max(len(columns), 1), max(GRID_ROWS_MAX - self._kept, 0))
        near = _widened(odd, NEIGHBOUR_ROWS)
        near &= np.cumsum(near) <= room
        keep &= ends | near
        return keep

    def result(self) -> SheetSample:
        """Return what was kept."""
        height = max(self._height, self._next_row - 1)
        holds = np.zeros(height, dtype=np.bool_)
        for first_row, mask in self._holds:
            holds[first_row - 1 : first_row - 1 + len(mask)] = mask
        numbers = sorted({number for _, kept in self._parts for number in kept})
        columns = {
            number: CellArray.joined(
                [kept.get(number) or CellArray.empty(size) for size, kept in self._parts]
            )
            for number in numbers[:GRID_COLUMNS_MAX]
        }
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.int64)
        totals = np.concatenate(self._totals) if self._totals else np.zeros(0, dtype=np.int64)
        return SheetSample(Grid.of_columns(rows, columns), holds, totals, tuple(self._used))


def holds_something(block: Block, columns: Iterable[int]) -> BoolArray:
    """Mark the rows of a block that hold something in some columns."""
    used = [block.columns[number] for number in columns if number in block.columns]
    holds: BoolArray = _count(used, block.height) > 0
    return holds


def _count(columns: Iterable[CellArray], height: int) -> IntArray:
    """Count the cells of each row that are not empty."""
    total = np.zeros(height, dtype=np.int64)
    for column in columns:
        total += column.kinds != CellKind.EMPTY
    return total


def _odd(columns: dict[int, CellArray], filled: IntArray) -> BoolArray:
    """Mark the rows that differ from most rows around them, and those next to blank rows."""
    blank = filled == 0
    valued = _holds_value(columns, len(filled))
    odd: BoolArray = filled < 0.5 * _usual(filled, ~blank)
    odd |= ~valued & (_usual(valued, ~blank) > 0)
    odd |= _says(_TOTAL_LIKE, columns, len(filled), looked_at=2)
    odd |= _widened(blank, 1)
    odd &= ~blank
    return odd


def _holds_value(columns: dict[int, CellArray], height: int) -> BoolArray:
    """Mark the rows that hold a value: a number, a date, or a text that begins like one."""
    valued: BoolArray = np.zeros(height, dtype=np.bool_)
    for column in columns.values():
        valued |= column.is_kind(CellKind.NUMBER, CellKind.DATE, CellKind.BOOL, CellKind.NO_VALUE)
    for column in columns.values():
        # Texts are searched only in rows without a value so far, which are soon very few.
        unsure = np.flatnonzero(~valued & (column.kinds == CellKind.TEXT))
        if len(unsure):
            begins = column.text.gather(unsure).str.contains(_NUMBER_LIKE)
            valued[unsure] = begins.fill_null(False).to_numpy()
    return valued


def _says(pattern: str, columns: dict[int, CellArray], height: int, looked_at: int) -> BoolArray:
    """Mark the rows where one of the first columns that hold text matches a pattern."""
    says: BoolArray = np.zeros(height, dtype=np.bool_)
    wordy = (one for _, one in sorted(columns.items()) if (one.kinds == CellKind.TEXT).any())
    for column in islice(wordy, looked_at):
        says |= column.text.str.contains(pattern).fill_null(False).to_numpy()
    return says


def _is_total(columns: dict[int, CellArray], height: int) -> BoolArray:
    """Mark the rows whose only text is a total word, among rows that have more texts."""
    texts = np.zeros(height, dtype=np.int64)
    for column in columns.values():
        texts += column.kinds == CellKind.TEXT
    says = _says(_TOTAL_ALONE, columns, height, looked_at=1)
    total: BoolArray = says & (texts == 1) & (_usual(texts, texts > 0) > 1)
    return total


def _usual(counts: IntArray | BoolArray, counted: BoolArray) -> FloatArray:
    """Return the median of its chunk for each row."""
    usual = np.zeros(len(counts))
    for start in range(0, len(counts), CHUNK_ROWS):
        chunk = slice(start, start + CHUNK_ROWS)
        among = counts[chunk][counted[chunk]]
        usual[chunk] = np.median(among) if len(among) else 0
    return usual


def _widened(mask: BoolArray, rows: int) -> BoolArray:
    """Also mark the neighbours of marked rows."""
    widened = mask.copy()
    for distance in range(1, rows + 1):
        widened[distance:] |= mask[:-distance]
        widened[:-distance] |= mask[distance:]
    return widened


def _run_lengths(mask: BoolArray) -> IntArray:
    """Return the length of the run of marked rows that ends at each row."""
    order = np.arange(1, len(mask) + 1)
    last_unmarked: IntArray = np.maximum.accumulate(np.where(mask, 0, order))
    return order - last_unmarked
