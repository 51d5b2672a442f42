"""Count the rows of each sheet where no workbook is written, so that issues name their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ade_engine.package.issues import Severity
from ade_engine.sheets.arrays import ByteArray, IntArray
from ade_engine.sheets.cells import CellArray
from ade_engine.writing.cell_notes import CellNote
from ade_engine.writing.sheet_writer import SheetColumn


@dataclass
class UnwrittenSheet:
    """Take what a sheet takes, and write nothing."""

    notes: list[CellNote] = field(default_factory=list)
    unfilled: int = 0

    def fill(self, rows: Sequence[int], column: int, severity: Severity) -> None:
        """Fill nothing."""


@dataclass
class RowPlaces:
    """Stand in for a workbook: the same sheets and rows, of unlimited height."""

    names: list[str] = field(default_factory=list)
    sheet: UnwrittenSheet = field(default_factory=UnwrittenSheet)
    cut_texts: int = 0

    def add_sheet(self, name: str, columns: Sequence[SheetColumn | str]) -> str:
        """Begin a sheet, and return its name."""
        self.names.append(name)
        self.sheet = UnwrittenSheet()
        return name

    def write(
        self, columns: Sequence[CellArray], marks: Sequence[ByteArray | None] | None = None
    ) -> None:
        """Write nothing."""

    def row_of(self, index: int) -> int:
        """Return the row that holds a row of the table, counted with the header."""
        return index + 2

    def rows_of(self, indexes: IntArray) -> list[int]:
        """Return nothing: there are no cells to fill."""
        return []

    def place_of(self, index: int | None) -> tuple[str, int]:
        """Return the sheet and the row of a row of the table; None is its header."""
        return self.names[-1], 1 if index is None else index + 2

    def close(self) -> None:
        """Finish nothing."""

    def abandon(self) -> None:
        """Delete nothing."""
