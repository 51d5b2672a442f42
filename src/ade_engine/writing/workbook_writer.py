"""Write a workbook sheet by sheet, in blocks of columns, with little memory.

The file gets its name only when it is complete. The same cells give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ade_engine.sheets.cells import CellArray
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX, column_letters
from ade_engine.writing import fixed_parts
from ade_engine.writing.row_xml import rows_xml
from ade_engine.writing.text_xml import escaped, shortened
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

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._unfinished = self._path.with_name(self._path.name + ".part")
        self._file = self._unfinished.open("wb")
        self._archive = ZipWriter(self._file)
        self._title = ""
        self._header: list[str] = []
        self._next_row = 0
        self.names: list[str] = []
        self.cut_texts = 0

    def add_sheet(self, name: str, header: Sequence[str]) -> str:
        """Begin a sheet with its header, and return its name in the file."""
        if len(header) > COLUMNS_MAX:
            raise OutputTooLarge(f"a sheet has at most {COLUMNS_MAX} columns")
        self._end_sheet()
        self._title, self._header = name, list(header)
        self._begin_sheet()
        return self.names[-1]

    def write(self, columns: Sequence[CellArray]) -> None:
        """Write rows: columns of equal height, in the order of the header."""
        if not columns:
            return
        if len(columns) > COLUMNS_MAX:
            raise OutputTooLarge(f"a sheet has at most {COLUMNS_MAX} columns")
        columns = [self._fitting(column) for column in columns]
        height, start = len(columns[0]), 0
        # Equal parts of at most BLOCK_ROWS, so that none is tiny.
        step = -(-height // -(-height // BLOCK_ROWS)) if height else 0
        while start < height:
            if self._next_row > ROWS_MAX or self._archive.part_bytes > PART_BYTES_MAX:
                self._end_sheet()
                self._begin_sheet()
            stop = min(start + step, height, start + ROWS_MAX - self._next_row + 1)
            cut = [column.slice(start, stop) for column in columns]
            self._archive.write(rows_xml(cut, self._next_row))
            self._next_row += stop - start
            start = stop

    def close(self) -> None:
        """Finish the file and rename it to its final name."""
        if not self.names:
            self.add_sheet("Sheet1", [])
        self._end_sheet()
        for name, text in (
            ("xl/workbook.xml", fixed_parts.workbook(self.names)),
            ("xl/_rels/workbook.xml.rels", fixed_parts.workbook_relations(len(self.names))),
            ("xl/styles.xml", fixed_parts.STYLES),
            ("_rels/.rels", fixed_parts.ROOT_RELATIONS),
            ("[Content_Types].xml", fixed_parts.content_types(len(self.names))),
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

    def _fitting(self, column: CellArray) -> CellArray:
        text, cut = shortened(column.text)
        self.cut_texts += cut
        return CellArray(column.kinds, column.numbers, text) if cut else column

    def _begin_sheet(self) -> None:
        self.names.append(_sheet_name(self._title, self.names))
        self._archive.begin(fixed_parts.sheet_part(len(self.names)))
        cells = escaped(shortened(CellArray.of(self._header).text)[0])
        heads = "".join(
            f'<c r="{column_letters(number)}1" s="{fixed_parts.STYLE_HEADER}" t="inlineStr">'
            f"{cells.opening}{text}</t></is></c>"
            for number, text in enumerate(cells.text.to_list(), 1)
        )
        self._archive.write(f'{fixed_parts.SHEET_HEAD}<row r="1">{heads}</row>'.encode())
        self._next_row = 2

    def _end_sheet(self) -> None:
        if self.names:
            self._archive.write(fixed_parts.SHEET_TAIL.encode())
            self._archive.end()


def _sheet_name(wanted: str, taken: Sequence[str]) -> str:
    """Make a valid and unique sheet name."""
    plain = _NOT_IN_NAMES.sub(" ", wanted).strip(" '") or "Sheet"
    used = {name.casefold() for name in taken}
    name, number = plain[:NAME_CHARS_MAX].rstrip(" '"), 1
    while name.casefold() in used:
        number += 1
        ending = f" ({number})"
        name = plain[: NAME_CHARS_MAX - len(ending)] + ending
    return name
