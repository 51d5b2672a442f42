"""Split rows at blank rows where tables of different columns are one under another.

The features of a small table drown among those of a big one on the same sheet. Each run of rows
between blank rows is therefore also looked at alone: it begins a table if its first row of several
cells holds nothing but distinct texts, values follow below them, and its own header is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ade_engine.sheets.arrays import IntArray
from ade_engine.tables.assembly import TableDraft
from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook

CONFIDENCE_MIN = 0.8
DATA_ROWS_MIN = 2
HEADER_CELLS_MIN = 2
VALUES_SHARE = 0.8
BLOCKS_MAX = 40  # of a sheet with more, none is looked at alone

Rows = tuple[int, int]  # the first and the last, as indexes into a grid


def blocks_of(grid: Grid) -> list[Rows]:
    """Return each run of rows that are not blank."""
    used: IntArray = np.flatnonzero(~grid.blank)
    if not len(used):
        return []
    breaks = np.flatnonzero(np.diff(used) > 1)
    firsts = [used[0], *used[breaks + 1]]
    lasts = [*used[breaks], used[-1]]
    return [(int(first), int(last)) for first, last in zip(firsts, lasts, strict=True)]


def stacked(grid: Grid, first_table: Callable[[Grid], TableDraft | None]) -> list[Rows]:
    """Return the rows of each table, with what is above and below it, or all rows."""
    blocks = blocks_of(grid)
    cuts: list[int] = []
    before: frozenset[str] | None = None
    for number, rows in enumerate(blocks if 1 < len(blocks) <= BLOCKS_MAX else []):
        header = _own_header(grid, rows, first_table)
        if header is None:
            continue
        if before is not None and header != before:
            cuts.append(blocks[_first_title(grid, blocks, number)][0])
        before = header
    edges = [0, *cuts, grid.height]
    return [(first, last - 1) for first, last in pairwise(edges)]


def _own_header(
    grid: Grid, rows: Rows, first_table: Callable[[Grid], TableDraft | None]
) -> frozenset[str] | None:
    """Return the texts of the header that a block has if it is looked at alone."""
    place = _first_of_several(grid, rows)
    if place is None or not _is_above_values(grid, place, rows[1]):
        return None
    found = first_table(grid.band(rows[0], rows[1], range(grid.width)))
    if found is None or not found.header or len(found.body) < DATA_ROWS_MIN:
        return None
    if found.confidence < CONFIDENCE_MIN or found.header[0] + rows[0] > place:
        return None
    last = grid.texts[found.header[-1] + rows[0]]
    named = np.flatnonzero(last != "")[1:]  # the first may name the group that follows
    return frozenset(f"{column} {last[column].casefold()}" for column in named.tolist())


def _first_of_several(grid: Grid, rows: Rows) -> int | None:
    several = np.flatnonzero(grid.filled[rows[0] : rows[1] + 1].sum(axis=1) >= HEADER_CELLS_MIN)
    return rows[0] + int(several[0]) if len(several) else None


def _is_above_values(grid: Grid, place: int, last: int) -> bool:
    """Return whether a row holds only distinct texts, and values are below one of them."""
    filled = grid.filled[place]
    below = grid.looks[place + 1 : last + 1]
    if not np.isin(grid.looks[place][filled], (CellLook.WORDS, CellLook.YEAR)).all():
        return False
    texts = [text for text in grid.texts[place] if text]
    if len(below) < DATA_ROWS_MIN or len(set(texts)) < len(texts):
        return False
    used = below != CellLook.NOTHING
    values = used & (below != CellLook.WORDS) & (below != CellLook.MARK)
    share = values.sum(axis=0) / np.maximum(used.sum(axis=0), 1)
    return bool((filled & (share >= VALUES_SHARE)).any())


def _first_title(grid: Grid, blocks: list[Rows], number: int) -> int:
    """Return the first of the blocks of single cells directly above a block."""
    while number > 1:
        first, last = blocks[number - 1]
        if last - first > 1 or (grid.filled[first : last + 1].sum(axis=1) > 1).any():
            break
        number -= 1
    return number
