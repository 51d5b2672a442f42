"""A table with its region, its column mapping and how its columns are written."""

from __future__ import annotations

from dataclasses import dataclass

from ade_engine.mapping.column_mapping import ColumnMapping
from ade_engine.package.column import Column
from ade_engine.pipeline.table_notation import TableNotations
from ade_engine.sheets.cells import CellArray
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
    notations: TableNotations

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
            notation=self.notations.of(number),
        )

    def cell(self, name: str, row: int) -> str:
        """Return the reference of a cell of a field: `Sheet1!B7`, or `B7` in a text file."""
        reference = a1(row, self.targets[name])
        return f"{self.sheet}!{reference}" if self.sheet else reference
