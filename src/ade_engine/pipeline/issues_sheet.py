"""The sheet that lists the issues and what was left out, with links to output and input."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ade_engine.package.issues import Severity
from ade_engine.pipeline.issue_marks import MARK_OF
from ade_engine.pipeline.left_out import LeftOut
from ade_engine.sheets.cells import CellArray
from ade_engine.writing.fixed_parts import quoted
from ade_engine.writing.sheet_writer import LINKS_MAX, CellLink, SheetColumn
from ade_engine.writing.styles import Look
from ade_engine.writing.typed_columns import FORMULA_LIKE
from ade_engine.writing.workbook_writer import WorkbookWriter

SHEET = "Issues"
LEFT_OUT = "left out"
LINES_MAX = LINKS_MAX // 2  # each line has at most two links
COLUMNS = (
    SheetColumn("Severity"),
    SheetColumn("Field"),
    SheetColumn("Issue"),
    SheetColumn("Message"),
    SheetColumn("Count", "integer"),
    SheetColumn("Output", look=Look.LINK),
    SheetColumn("Input", look=Look.LINK),
    SheetColumn("Rule"),
)
_OUTPUT, _INPUT = 6, 7
_FORMULA = re.compile(FORMULA_LIKE)


@dataclass(frozen=True, slots=True)
class LinkedPlace:
    """A place that a line links to: cells, a sheet, or a file."""

    text: str = ""
    link: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class IssueRow:
    """One line of the list."""

    severity: str
    field: str
    code: str
    message: str
    count: int
    output: LinkedPlace = LinkedPlace()
    input: LinkedPlace = LinkedPlace()
    rule: str = ""


@dataclass
class IssueList:
    """Collect the lines, the first ones of each severity; further ones are only counted."""

    rows: dict[str, list[IssueRow]] = field(default_factory=dict)
    omitted: int = 0

    def has_room(self, severity: str) -> bool:
        """Return whether another line of a severity is kept."""
        return len(self.rows.get(severity, ())) < LINES_MAX

    def add(self, row: IssueRow) -> None:
        """Add a line, or count it."""
        if self.has_room(row.severity):
            self.rows.setdefault(row.severity, []).append(row)
        else:
            self.omitted += 1

    def lines(self) -> list[IssueRow]:
        """Return the lines by severity, and a last one that says how many more there are."""
        ordered = [row for name in (*Severity, LEFT_OUT) for row in self.rows.get(str(name), ())]
        omitted = self.omitted + max(len(ordered) - LINES_MAX, 0)
        if not omitted:
            return ordered
        message = f"{omitted} further cells are not listed here; artifact.json counts them."
        more = IssueRow(Severity.INFO, "", "list_is_full", message, omitted)
        return [*ordered[: LINES_MAX - 1], more]


def row_of_left_out(one: LeftOut, file: str, has_cells: bool) -> IssueRow:
    """Return the line about something that was left out."""
    named = f"{one.sheet}!{one.place}" if one.sheet and one.place else one.sheet or one.place
    first = one.place.split(",", 1)[0]
    return IssueRow(
        LEFT_OUT,
        "",
        f"{one.what}: {one.reason}",
        one.message,
        one.count,
        input=input_place(file, one.sheet if has_cells else "", first, named),
    )


def input_place(file: str, sheet: str, cells: str, text: str) -> LinkedPlace:
    """Return a place in the input; a text file has no cells that a link could name."""
    return LinkedPlace(text, f"{quoted(sheet)}!{cells}" if sheet and cells else "", file)


def write_issues_file(path: Path, rows: Iterable[IssueRow]) -> None:
    """Write the list as a CSV file, for outputs that have no sheet for it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([column.header.lower() for column in COLUMNS])
        for row in rows:
            about = (row.severity, row.field, row.code, row.message, str(row.count))
            texts = (*about, row.output.text, row.input.text, row.rule)
            # The names of sheets are the sender's: none may become a formula.
            lines.writerow([f"'{text}" if _FORMULA.match(text) else text for text in texts])


def write_issues_sheet(writer: WorkbookWriter, rows: Iterable[IssueRow]) -> str:
    """Write the list as the last sheet of a workbook, and return its name."""
    name = writer.add_sheet(SHEET, COLUMNS)
    listed = list(rows)
    columns: tuple[list[str] | list[int], ...] = (
        [row.severity for row in listed],
        [row.field for row in listed],
        [row.code for row in listed],
        [row.message for row in listed],
        [row.count for row in listed],
        [row.output.text for row in listed],
        [row.input.text for row in listed],
        [row.rule for row in listed],
    )
    cells = [CellArray.of([value or None for value in column]) for column in columns]
    marks = {str(severity): mark for severity, mark in MARK_OF.items()}
    fills = np.array([marks.get(row.severity, 0) for row in listed], np.uint8)
    writer.write(cells, [fills, *[None] * (len(COLUMNS) - 1)])
    for number, row in enumerate(listed, 2):
        for column, place in ((_OUTPUT, row.output), (_INPUT, row.input)):
            if place.link or place.file:
                writer.sheet.links.append(CellLink(number, column, place.link, place.file))
    return name
