"""Read the data rows of a table in chunks: the unit in which rows are processed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import Block, CellArray
from ade_engine.tables.regions import TableRegion


@dataclass(frozen=True)
class Chunk:
    """Consecutive data rows: their numbers in the sheet, and cells by column number."""

    rows: IntArray
    raw: dict[int, CellArray]

    def cells(self, number: int) -> CellArray:
        """Return a column's cells, or empty cells if the chunk does not have it."""
        found = self.raw.get(number)
        return CellArray.empty(len(self.rows)) if found is None else found


def chunks(
    region: TableRegion, blocks: Iterator[Block], hidden_rows: IntArray | None = None
) -> Iterator[Chunk]:
    """Yield the data rows of a table from the blocks of its sheet."""
    for block in blocks:
        wanted = region.data_mask(block)
        rows = np.arange(block.first_row, block.first_row + block.height)
        if hidden_rows is not None:
            wanted &= ~np.isin(rows, hidden_rows)
        if not wanted.any():
            continue
        mine = {
            number: block.columns[number] for number in region.columns if number in block.columns
        }
        if not wanted.all():
            rows = rows[wanted]
            mine = {number: cells.where(wanted) for number, cells in mine.items()}
        yield Chunk(rows, mine)
