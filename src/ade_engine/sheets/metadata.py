"""Collect what a file says about a sheet besides its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ade_engine.errors import DamagedFile, NoCells, UnreadableFile
from ade_engine.sheets.coordinates import COLUMNS_MAX, Range
from ade_engine.sheets.read_limits import ReadLimits

BEYOND_LIMIT = "beyond_limit"
PADDED = "padded"  # the format fills the number with zeros on the left


@dataclass(frozen=True, slots=True)
class UnreadSheet:
    """A sheet that is not read, and why.

    Reasons: `chart`, `dialog` and `macro` sheets have no cells to read; a sheet is `missing` if the
    file names it and does not hold it; sheets `beyond_limit` follow the first `sheets_max`.
    """

    name: str
    reason: str


def no_sheet_with_cells(unread: Sequence[UnreadSheet]) -> UnreadableFile:
    """Return the error of a workbook whose sheets are all left out."""
    reasons = {sheet.reason for sheet in unread}
    if reasons and reasons <= {"chart", "dialog", "macro"}:
        kinds = " and ".join(f"{reason} sheets" for reason in sorted(reasons))
        return NoCells(f"the workbook has only {kinds}, which hold no cells")
    return DamagedFile("the workbook has no sheet with cells")


@dataclass(slots=True)
class SheetMetadata:
    """Merged ranges, hidden rows and columns, and notes about what was skipped."""

    limits: ReadLimits
    merged: list[Range] = field(default_factory=list)
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: set[int] = field(default_factory=set)
    marks: dict[int, set[str]] = field(default_factory=dict)
    """What the number formats of a column say besides the values: `PADDED`, or a currency."""
    notes: list[str] = field(default_factory=list)

    def add_merged(self, reference: str) -> None:
        """Add a merged range; an invalid reference is skipped with a note."""
        if len(self.merged) >= self.limits.merged_max:
            self.note("merged_ranges_dropped")
            return
        try:
            self.merged.append(Range.parse(reference))
        except ValueError:
            self.note("merged_range_invalid")

    def hide_columns(self, first: str, last: str) -> None:
        """Add hidden columns, given as decimal numbers in text."""
        if first.isdecimal() and last.isdecimal():
            self.hidden_columns.update(range(int(first), min(int(last), COLUMNS_MAX) + 1))

    def mark(self, column: int, mark: str) -> None:
        """Add what the number format of a cell says besides its value."""
        self.marks.setdefault(column, set()).add(mark)

    def note(self, code: str) -> None:
        """Add a note, once."""
        if code not in self.notes:
            self.notes.append(code)
