"""Read the data rows of a table in chunks: the unit in which rows are processed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ade_engine.mapping.column_mapping import ColumnMapping
from ade_engine.package.column import Column
from ade_engine.package.package_settings import ReadingSettings
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import Block, CellArray
from ade_engine.sheets.coordinates import a1
from ade_engine.tables.regions import TableRegion

Columns = dict[str, CellArray]


@dataclass(frozen=True)
class MappedTable:
    """A table of a sheet with its region and its column mapping."""

    number: int
    sheet: str
    region: TableRegion
    mapping: ColumnMapping
    reading: ReadingSettings

    @property
    def targets(self) -> dict[str, int]:
        """Return {field: number of its column}."""
        return self.mapping.targets

    def column(self, name: str, cells: CellArray) -> Column:
        """Wrap a field's cells for the author's functions."""
        number = self.targets[name]
        mapped = next(one for one in self.mapping.columns if one.number == number)
        return Column(
            cells,
            header=mapped.header,
            letter=mapped.letter,
            field=name,
            decimal=self.reading.decimal,
            day_first=self.reading.day_first,
        )

    def cell(self, name: str, row: int) -> str:
        """Return the reference of a cell of a field: `Sheet1!B7`, or `B7` in a text file."""
        reference = a1(row, self.targets[name])
        return f"{self.sheet}!{reference}" if self.sheet else reference


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
