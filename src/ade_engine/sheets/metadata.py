"""Collect what a file says about a sheet besides its cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from ade_engine.sheets.coordinates import COLUMNS_MAX, Range
from ade_engine.sheets.read_limits import ReadLimits


@dataclass(slots=True)
class SheetMetadata:
    """Merged ranges, hidden rows and columns, and notes about what was skipped."""

    limits: ReadLimits
    merged: list[Range] = field(default_factory=list)
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: set[int] = field(default_factory=set)
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

    def note(self, code: str) -> None:
        """Add a note, once."""
        if code not in self.notes:
            self.notes.append(code)
