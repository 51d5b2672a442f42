"""Write a workbook sheet by sheet, in blocks of columns, with little memory.

The file gets its name only when it is complete. The same cells give the same bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from ade_engine.sheets.arrays import ByteArray, IntArray
from ade_engine.sheets.cells import CellArray
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX
from ade_engine.writing import fixed_parts
from ade_engine.writing.sheet_writer import SheetColumn, SheetWriter
from ade_engine.writing.styles import StyleTable
from ade_engine.writing.text_xml import shortened
from ade_engine.writing.zip_writer import OutputTooLarge, ZipWriter

BLOCK_ROWS = 12_000
PART_BYTES_MAX = 3 * 2**30  # a larger sheet continues in another one
NAME_CHARS_MAX = 31

_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")


class WorkbookWriter:
    """Write sheets one after the other, and the rows of each.

    A sheet that is full continues in another one with the same header, named `Name (2)`.
    `cut_texts` counts the texts that were too long for a cell.
    """

    def __init__(
        self, path: str | Path, properties: fixed_parts.Properties = fixed_parts.Properties()
    ) -> None:
        self._path = Path(path)
        self._unfinished = self._path.with_name(self._path.name + ".part")
        self._file = self._unfinished.open("w+b")
        self._archive = ZipWriter(self._file)
        self._properties = properties
        self._styles = StyleTable()
        self._title = ""
        self._rows = 0
        self._starts: list[tuple[int, str]] = []
        self._entries: list[fixed_parts.SheetEntry] = []
        self._with_notes: list[int] = []
        self._sheet: SheetWriter | None = None
        self.names: list[str] = []
        self.cut_texts = 0

    @property
    def sheet(self) -> SheetWriter:
        """Return the sheet that is being written."""
        if self._sheet is None:
            raise ValueError("the workbook has no sheet yet")
        return self._sheet

    def add_sheet(self, name: str, columns: Sequence[SheetColumn | str]) -> str:
        """Begin a sheet with its header, and return its name in the file."""
        if len(columns) > COLUMNS_MAX:
            raise OutputTooLarge(f"a sheet has at most {COLUMNS_MAX} columns")
        self._end_sheet()
        self._title, self._rows, self._starts = name, 0, []
        self._begin_sheet(
            [SheetColumn(column) if isinstance(column, str) else column for column in columns]
        )
        return self.names[-1]

    def write(
        self, columns: Sequence[CellArray], marks: Sequence[ByteArray | None] | None = None
    ) -> None:
        """Write rows: columns of equal height, in the order of the header, and marks of cells."""
        if not columns:
            return
        if len(columns) > COLUMNS_MAX:
            raise OutputTooLarge(f"a sheet has at most {COLUMNS_MAX} columns")
        fitting = [self._fitting(column) for column in columns]
        marks = marks or [None] * len(columns)
        height, start = len(columns[0]), 0
        # Equal parts of at most BLOCK_ROWS, so that none is tiny.
        step = -(-height // -(-height // BLOCK_ROWS)) if height else 0
        while start < height:
            if self.sheet.next_row > ROWS_MAX or self._archive.part_bytes > PART_BYTES_MAX:
                columns_again = self.sheet.columns
                self._end_sheet()
                self._begin_sheet(columns_again)
            stop = min(start + step, height, start + ROWS_MAX - self.sheet.next_row + 1)
            self.sheet.write(
                [column.slice(start, stop) for column, _ in fitting],
                [bytes_max for _, bytes_max in fitting],
                [_marks_in(mark, start, stop) for mark in marks],
            )
            self._rows += stop - start
            start = stop

    def row_of(self, index: int) -> int:
        """Return the row of the open sheet that holds a row of the table; 1 or less: not there."""
        return index - self._starts[-1][0] + 2

    def rows_of(self, indexes: IntArray) -> list[int]:
        """Return the rows of the open sheet that hold rows of the table; not those elsewhere."""
        rows = indexes - self._starts[-1][0] + 2
        found: list[int] = rows[rows > 1].tolist()
        return found

    def place_of(self, index: int | None) -> tuple[str, int]:
        """Return the sheet and the row that hold a row of the table; None is its header."""
        if index is None:
            return self._starts[-1][1], 1
        first, name = self._starts[bisect_right(self._starts, index, key=lambda one: one[0]) - 1]
        return name, index - first + 2

    def close(self) -> None:
        """Finish the file and rename it to its final name."""
        if not self.names:
            self.add_sheet("Sheet1", [])
        self._end_sheet()
        sheets = len(self._entries)
        for name, text in (
            ("xl/workbook.xml", fixed_parts.workbook(self._entries)),
            ("xl/_rels/workbook.xml.rels", fixed_parts.workbook_relations(sheets)),
            ("xl/styles.xml", self._styles.xml()),
            ("docProps/core.xml", fixed_parts.core_properties(self._properties)),
            ("docProps/app.xml", fixed_parts.application_properties(self._properties)),
            ("_rels/.rels", fixed_parts.ROOT_RELATIONS),
            ("[Content_Types].xml", fixed_parts.content_types(sheets, self._with_notes)),
        ):
            self._archive.begin(name)
            self._archive.write(text.encode())
            self._archive.end()
        self._archive.close()
        self._file.close()
        self._unfinished.replace(self._path)

    def abandon(self) -> None:
        """Stop and delete the unfinished file."""
        self._archive.abandon()
        self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def _fitting(self, column: CellArray) -> tuple[CellArray, int]:
        text, cut, bytes_max = shortened(column.text)
        self.cut_texts += cut
        return CellArray(column.kinds, column.numbers, text) if cut else column, bytes_max

    def _begin_sheet(self, columns: Sequence[SheetColumn]) -> None:
        self.names.append(_sheet_name(self._title, self.names))
        self._starts.append((self._rows, self.names[-1]))
        self._sheet = SheetWriter(
            self._archive, len(self.names), self.names[-1], columns, self._styles
        )

    def _end_sheet(self) -> None:
        if self._sheet is not None:
            self._sheet.end()
            self._entries.append(self._sheet.entry())
            if self._sheet.notes:
                self._with_notes.append(len(self._entries))
            self._sheet = None


def _marks_in(marks: ByteArray | None, start: int, stop: int) -> ByteArray | None:
    if marks is None:
        return None
    cut = marks[start:stop]
    return cut if cut.any() else None


def _sheet_name(wanted: str, taken: Sequence[str]) -> str:
    """Make a valid and unique sheet name."""
    plain = _NOT_IN_NAMES.sub(" ", wanted).strip(" '") or "Sheet"
    used = {"history", *(name.casefold() for name in taken)}  # Excel keeps that name for itself
    name, number = plain[:NAME_CHARS_MAX].rstrip(" '"), 1
    while name.casefold() in used:
        number += 1
        ending = f" ({number})"
        name = plain[: NAME_CHARS_MAX - len(ending)] + ending
    return name
