"""Report what a sheet shows to a person and its cells do not hold: the checks of a sheet's layout.

Merged cells hold their value once, hidden rows and columns are read unless the settings exclude
them, the encoding of an old text file is a guess, and a program that opened a text file may have
turned only those texts into dates that fit its own order of day and month.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ade_engine.package.config_package import FieldRules
from ade_engine.package.conversion import moments
from ade_engine.package.field import FieldType
from ade_engine.package.issues import Issue, Severity
from ade_engine.pipeline.chunk import Chunk, chunks
from ade_engine.pipeline.issue_log import IssueLog
from ade_engine.pipeline.mapped_table import MappedTable
from ade_engine.pipeline.source_checks import MIXED_CURRENCIES
from ade_engine.sheets.arrays import BoolArray, IntArray
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.sheets.metadata import PADDED
from ade_engine.sheets.workbook import ENCODING_GUESSED

MERGED_CELL = Issue(
    "merged_cell",
    Severity.WARNING,
    "The cell is part of a merged range, whose value is only in the range's first cell.",
)
HIDDEN_ROW = Issue(
    "hidden_row",
    Severity.INFO,
    "The row is hidden in the input; [reading] hidden_rows excludes it.",
)
HIDDEN_COLUMN = Issue(
    "hidden_column",
    Severity.INFO,
    "The column is hidden in the input; [reading] hidden_columns excludes it.",
)
GUESSED_ENCODING = Issue(
    "guessed_encoding",
    Severity.WARNING,
    "The file does not say how its letters are encoded and is not Unicode, so letters beyond"
    " A to Z may be wrong; save it as UTF-8.",
)
SUSPECT_DATE = Issue(
    "suspect_date",
    Severity.WARNING,
    "Some dates of the column are texts that do not fit the order of day and month, and all others"
    " have a day up to 12: a program may have exchanged day and month when it opened the file.",
)
ZEROS_NOT_HELD = Issue(
    "leading_zeros_lost",
    Severity.WARNING,
    "The input shows the number with leading zeros, which the cell does not hold.",
)
MONTHS = 12


@dataclass
class SheetChecks:
    """Check the chunks of one table against what is known about its sheet."""

    table: MappedTable
    rules: Sequence[FieldRules]
    issue_log: IssueLog
    _merged: dict[int, IntArray] = field(default_factory=dict)
    _suspect: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Find the columns that need a check; the notation of dates must be known."""
        sheet = self.table.notations.sheet
        row = self.table.region.header_row
        for rules in self.rules:
            column = self.table.targets[rules.name]
            if sheet.merged:
                self._merged[column] = self._merged_rows(column)
            if rules.field.type == FieldType.DATE and self._is_half_converted(column):
                self._suspect.add(column)
            if row is not None and column in sheet.hidden_columns:
                self.issue_log.built_in(rules.name, "hidden", HIDDEN_COLUMN, np.array([row]))

    def __call__(self, chunk: Chunk) -> None:
        """Check one chunk."""
        sheet = self.table.notations.sheet
        hidden = np.isin(chunk.rows, sheet.hidden_rows) if len(sheet.hidden_rows) else None
        guessed = ENCODING_GUESSED in sheet.notes
        for number, rules in enumerate(self.rules):
            column = self.table.targets[rules.name]
            cells = chunk.cells(column)
            if column in self._merged:
                covered = np.isin(chunk.rows, self._merged[column]) & (cells.kinds == 0)
                self.issue_log.built_in(rules.name, "merged", MERGED_CELL, chunk.rows[covered])
            marks = sheet.format_marks.get(column, set())
            shown = chunk.rows[cells.is_kind(CellKind.NUMBER)] if marks else chunk.rows[:0]
            if PADDED in marks and rules.field.type in _KEEPS_TEXT:
                self.issue_log.built_in(rules.name, "zeros", ZEROS_NOT_HELD, shown)
            if len(marks - {PADDED}) > 1:
                self.issue_log.built_in(rules.name, "currency", MIXED_CURRENCIES, shown)
            if guessed:
                doubtful = _beyond_ascii(cells)
                self.issue_log.built_in(
                    rules.name, "encoding", GUESSED_ENCODING, chunk.rows[doubtful]
                )
            if column in self._suspect:
                dates = cells.is_kind(CellKind.DATE)
                self.issue_log.built_in(rules.name, "date_order", SUSPECT_DATE, chunk.rows[dates])
            if hidden is not None and number == 0:  # one issue for a row is enough
                self.issue_log.built_in(rules.name, "hidden", HIDDEN_ROW, chunk.rows[hidden])

    def _merged_rows(self, column: int) -> IntArray:
        """Return the data rows in which a column has a merged cell that is not its range's first.

        Ranges may overlap, so that the rows are counted in one array however many ranges there are.
        """
        data = self.table.region.data_rows
        edges = np.zeros(data.last - data.first + 2, np.int64)
        for one in self.table.notations.sheet.merged:
            if one.first_column <= column <= one.last_column:
                first = max(one.first_row + (one.first_column == column), data.first)
                last = min(one.last_row, data.last)
                if first <= last:
                    edges[first - data.first] += 1
                    edges[last + 1 - data.first] -= 1
        return np.flatnonzero(np.cumsum(edges) > 0) + data.first

    def _is_half_converted(self, column: int) -> bool:
        """Return whether the texts of a column all have one order and its dates may have both."""
        notations = self.table.notations
        evidence = notations.dates[column]
        if evidence.either or (evidence.first > 0) == (evidence.second > 0):
            return False
        rows, found = self.table.region.data_rows, False
        for chunk in chunks(self.table.region, notations.sheet.blocks(rows.first, rows.last)):
            cells = chunk.cells(column)
            days = moments(cells.numbers[cells.is_kind(CellKind.DATE)]).dt.day()
            if (days > MONTHS).any():
                return False
            found = found or len(days) > 0
        return found


_KEEPS_TEXT = (FieldType.TEXT, FieldType.ANY)


def _beyond_ascii(cells: CellArray) -> BoolArray:
    found: BoolArray = cells.text.str.contains(r"[^\x00-\x7f]").fill_null(False).to_numpy()
    return found
