"""Some rows of a table on their way through the passes: a column of cells for each mapped field."""

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
    """A table, where it is, and which of its columns is which field."""

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
        """Name a cell of a field: `Sheet1!B7`, or `B7` in a text file."""
        place = a1(row, self.targets[name])
        return f"{self.sheet}!{place}" if self.sheet else place


@dataclass(frozen=True)
class Chunk:
    """Consecutive data rows: their numbers in the sheet, and cells by column number."""

    rows: IntArray
    raw: dict[int, CellArray]

    def cells(self, number: int) -> CellArray:
        """Return a column's cells, empty ones if the chunk has none there."""
        found = self.raw.get(number)
        return CellArray.empty(len(self.rows)) if found is None else found


def chunks(
    region: TableRegion, blocks: Iterator[Block], hidden_rows: IntArray | None = None
) -> Iterator[Chunk]:
    """Cut the data rows of a table out of a sheet's blocks."""
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
