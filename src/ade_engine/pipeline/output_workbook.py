"""Write tables to the sheets of a workbook, mark cells with issues, and list the issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ade_engine.package.config_package import Package
from ade_engine.package.issues import Severity
from ade_engine.pipeline.chunk import Chunk
from ade_engine.pipeline.issue_log import IssueLine
from ade_engine.pipeline.issue_marks import IssueCells, IssueMarks, IssuePlace
from ade_engine.pipeline.issues_sheet import (
    IssueList,
    IssueRow,
    LinkedPlace,
    input_place,
    row_of_left_out,
    write_issues_sheet,
)
from ade_engine.pipeline.left_out import LeftOut
from ade_engine.pipeline.map_tables import PlannedTable
from ade_engine.pipeline.note_texts import SheetNotes, note_text
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import CellArray
from ade_engine.sheets.coordinates import ROWS_MAX, Range
from ade_engine.writing.fixed_parts import Properties, quoted
from ade_engine.writing.row_places import RowPlaces
from ade_engine.writing.sheet_writer import SheetColumn
from ade_engine.writing.workbook_writer import WorkbookWriter


@dataclass(frozen=True)
class InputFile:
    """What links and properties say about the input."""

    name: str
    has_cells: bool
    """Whether a link can name a cell of it: not in a text file."""

    @property
    def link(self) -> str:
        """Return the target of links: a file beside the workbook, whatever folder the name has."""
        return PurePosixPath(self.name.replace("\\", "/")).name.lstrip(".")


class OutputWorkbook:
    """Write the rows of tables to sheets; several tables may share a sheet.

    Without a path no workbook is written, but issues are listed all the same.
    """

    def __init__(self, path: Path | None, package: Package, source: InputFile) -> None:
        self._package = package
        self._source = source
        self._labels = {rules.name: rules.label for rules in package.fields}
        self._writer: WorkbookWriter | RowPlaces = RowPlaces()
        if path is not None:
            self._writer = WorkbookWriter(path, _properties(package, source))
        self._sheets: list[tuple[str, int]] = []
        self._list = IssueList()
        self._notes = SheetNotes()
        self._notes_omitted = self._unfilled = 0
        self._table: PlannedTable | None = None
        self._marks = IssueMarks({})
        self.issues: list[IssueRow] = []
        self.issues_sheet: str | None = None

    def open_sheet(self, name: str, columns: Sequence[SheetColumn]) -> str:
        """Begin a sheet, and return its name."""
        self._end_sheet()
        self._sheets.append((self._writer.add_sheet(name, columns), 0))
        return self._sheets[-1][0]

    def open_table(self, table: PlannedTable, fields: Sequence[str]) -> None:
        """Say which table the next rows are of."""
        self._table = table
        self._marks = IssueMarks({name: at for at, name in enumerate(fields)})

    def mark(self, line: IssueLine, rows: IntArray | None) -> None:
        """Mark rows of the table that have an issue."""
        self._marks.mark(line, rows)

    def write(self, columns: Sequence[CellArray], chunk: Chunk) -> None:
        """Write the rows of a chunk of the table that was opened last."""
        name, rows = self._sheets[-1]
        marks, found = self._marks.take(chunk.rows, rows, len(columns))
        self._writer.write(columns, marks)
        self._sheets[-1] = (name, rows + len(columns[0]))
        for cells in found:
            self._report(cells, chunk)

    def close_table(self) -> None:
        """Mark the issues that were found after their rows were written."""
        for cells in self._marks.late():
            self._report(cells, None)
            column = self._marks.columns.get(cells.line.field)
            if column is not None:
                rows = [1] if cells.indexes is None else self._writer.rows_of(cells.indexes)
                self._writer.sheet.fill(rows, column + 1, cells.line.severity)
        self._table = None

    def _rows_of(self, place: IssuePlace) -> Iterator[tuple[int, int]]:
        """Number the rows of the open sheet of a place; an issue of a table is at its header."""
        if place.index is None:
            yield 0, 1
            return
        first = self._writer.row_of(place.index)
        for offset in range(max(2 - first, 0), place.count):  # rows of a full sheet are passed
            yield offset, first + offset

    def _report(self, cells: IssueCells, chunk: Chunk | None) -> None:
        """List an issue, and write notes at its cells, as far as there is room."""
        line, seen = cells.line, 0
        column = self._marks.columns.get(line.field)
        notes = self._package.settings.output.notes != "off" and column is not None
        for place in cells.places():
            listed = self._list.has_room(line.severity)
            noted = notes and self._notes.has_room(line.severity)
            if not listed and not noted:
                break
            if listed:
                self._list.add(self._row(place))
            else:
                self._list.omitted += place.count
            if column is not None and notes:
                self._write_notes(place, column, chunk)
            seen += place.count
        self._list.omitted += cells.count - seen
        self._notes.omitted += cells.count - seen if notes else 0

    def _write_notes(self, place: IssuePlace, column: int, chunk: Chunk | None) -> None:
        severity, written = place.line.severity, 0
        for offset, row in self._rows_of(place):
            if not self._notes.has_room(severity):
                break
            self._notes.add(row, column + 1, severity, self._note(place, offset, chunk))
            written += 1
        self._notes.omitted += place.count - written

    def _note(self, place: IssuePlace, offset: int, chunk: Chunk | None) -> str:
        if place.source_row is None:
            return note_text(place.line, "")
        row = place.source_row + offset
        table = self._open_table
        value = None
        if chunk is not None and self._may_quote(place.line.field):
            cells = chunk.cells(table.mapped.targets[place.line.field])
            at = int(np.searchsorted(chunk.rows, row))
            (value,) = cells.slice(at, at + 1).values()
        return note_text(place.line, table.mapped.cell(place.line.field, row), value)

    def _may_quote(self, name: str) -> bool:
        """Return whether a note may show the input's value: a transform may exist to hide it."""
        rules = next(rules for rules in self._package.fields if rules.name == name)
        transforms = {"transform", "transform_column"} & rules.functions.keys()
        return self._package.settings.output.notes == "values" and not transforms

    @property
    def _open_table(self) -> PlannedTable:
        if self._table is None:
            raise ValueError("no table is open")
        return self._table

    def _row(self, place: IssuePlace) -> IssueRow:
        line = place.line
        return IssueRow(
            line.severity,
            self._labels.get(line.field, line.field),
            line.code,
            line.message,
            place.count,
            self._output_place(place),
            self._input_place(place),
            line.rule,
        )

    def _output_place(self, place: IssuePlace) -> LinkedPlace:
        column = self._marks.columns.get(place.line.field)
        if column is None:
            return LinkedPlace()
        sheet, first = self._writer.place_of(place.index)
        last = min(first + place.count - 1, ROWS_MAX)  # the rest is in the sheet that follows
        cells = str(Range(first, column + 1, last, column + 1))
        return LinkedPlace(f"{sheet}!{cells}", f"{quoted(sheet)}!{cells}")

    def _input_place(self, place: IssuePlace) -> LinkedPlace:
        mapped = self._open_table.mapped
        number = mapped.targets.get(place.line.field)
        if place.source_row is None or number is None:
            cells = str(mapped.region.range)
        else:
            last = place.source_row + place.count - 1
            cells = str(Range(place.source_row, number, last, number))
        text = f"{mapped.sheet}!{cells}" if mapped.sheet else cells
        sheet = mapped.sheet if self._source.has_cells else ""
        return input_place(self._source.link, sheet, cells, text)

    def add_left_out(self, one: LeftOut) -> None:
        """List something that is not in the output."""
        self._list.add(row_of_left_out(one, self._source.link, self._source.has_cells))

    def _end_sheet(self) -> None:
        if not self._sheets:
            return
        sheet = self._writer.sheet
        sheet.notes.extend(self._notes.notes())
        self._notes_omitted += self._notes.omitted
        self._unfilled += sheet.unfilled
        self._notes = SheetNotes()

    def close(self) -> None:
        """Write the list of issues, if there is something to list, and finish the file."""
        self._end_sheet()
        for code, count, message in (
            ("texts_cut", self._writer.cut_texts, "texts were cut to what a cell can hold."),
            ("notes_omitted", self._notes_omitted, "further cells with issues have no note."),
            ("fills_omitted", self._unfilled, "further cells with issues are not filled."),
        ):
            if count:
                severity = Severity.WARNING if code == "texts_cut" else Severity.INFO
                self._list.add(IssueRow(severity, "", code, f"{count} {message}", count))
        self.issues = self._list.lines()
        if self.issues and isinstance(self._writer, WorkbookWriter):
            self.issues_sheet = write_issues_sheet(self._writer, self.issues)
        self._writer.close()

    def abandon(self) -> None:
        """Stop and delete the unfinished file."""
        self._writer.abandon()

    def as_json(self) -> dict[str, Any]:
        """Return what was written; a sheet that was full continues in the ones after it."""
        names = [name for name in self._writer.names if name != self.issues_sheet]
        firsts = [names.index(name) for name, _ in self._sheets]
        return {
            "sheets": [
                {"sheet": name, "rows": rows, "goes_on_in": names[first + 1 : end]}
                for (name, rows), first, end in zip(
                    self._sheets, firsts, [*firsts[1:], len(names)], strict=True
                )
            ],
            "issues_sheet": self.issues_sheet,
            "texts_cut": self._writer.cut_texts,
        }


def _properties(package: Package, source: InputFile) -> Properties:
    name = package.settings.name
    return Properties(
        title=f"{source.name}, normalized",
        subject=name,
        description=f"Made from {source.name} with the config package {name}"
        f" ({package.sources.digest}).",
    )
