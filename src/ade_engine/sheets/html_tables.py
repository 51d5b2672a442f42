"""Read the tables of an HTML page, which many programs export with the suffix .xls.

All tables go into one sheet, one below the other with an empty row in between, as spreadsheet
programs show them. Every cell is text.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import BinaryIO

from ade_engine.errors import TooLarge, UnknownFormat
from ade_engine.sheets.block_builder import RowOfValues, build_blocks
from ade_engine.sheets.cells import Block
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX, Range
from ade_engine.sheets.encoding import detect_encoding, utf8_pieces
from ade_engine.sheets.metadata import SheetMetadata
from ade_engine.sheets.read_limits import MIB, ReadLimits

SPAN_MAX = 1_000
_SILENT = {"script", "style", "title", "head"}


class HtmlBook:
    """A page with at least one table."""

    def __init__(self, file: BinaryIO, limits: ReadLimits) -> None:
        if file.seek(0, 2) > limits.document_bytes_max:
            size = limits.document_bytes_max // MIB
            raise TooLarge(f"the page is larger than {size} MiB (document_bytes_max)")
        self._file = file
        self._limits = limits
        self.encoding = detect_encoding(file)
        if not any(b"<t" in piece.lower() for piece in utf8_pieces(file, self.encoding)):
            raise UnknownFormat("this is an HTML page without a table")

    def read(self, metadata: SheetMetadata) -> Iterator[Block]:
        """Yield the blocks of all tables."""
        yield from build_blocks(self._rows(metadata), self._limits)

    def _rows(self, metadata: SheetMetadata) -> Iterator[RowOfValues]:
        tables = _Tables(metadata)
        for piece in utf8_pieces(self._file, self.encoding):
            tables.feed(piece.decode("utf-8", "replace"))
            yield from tables.taken()
        tables.close()
        tables.end_row()
        yield from tables.taken()


class _Tables(HTMLParser):
    def __init__(self, metadata: SheetMetadata) -> None:
        super().__init__(convert_charrefs=True)
        self._facts = metadata
        self._ready: list[RowOfValues] = []
        self._row = 0
        self._column = 0
        self._cells: dict[int, object] = {}
        self._held: dict[int, int] = {}  # {column: rows that a rowspan above still covers}
        self._text: list[str] | None = None
        self._span = (1, 1)
        self._silent = 0

    def taken(self) -> list[RowOfValues]:
        """Return the complete rows and forget them."""
        ready, self._ready = self._ready, []
        return ready

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell."""
        match tag:
            case "table":
                self.end_row()
                self._row += 1 if self._row else 0
                self._held.clear()
            case "tr":
                self.end_row()
                self._begin_row()
            case "td" | "th":
                self._end_cell()
                if not self._row or self._column < 0:
                    self._begin_row()
                given = dict(attrs)
                self._span = (_span(given.get("rowspan")), _span(given.get("colspan")))
                self._text = []
            case "br":
                self.handle_data("\n")
            case _ if tag in _SILENT:
                self._silent += 1

    def handle_endtag(self, tag: str) -> None:
        """End a cell, a row or a table."""
        match tag:
            case "td" | "th":
                self._end_cell()
            case "tr" | "table":
                self.end_row()
            case _ if tag in _SILENT:
                self._silent = max(self._silent - 1, 0)

    def handle_data(self, data: str) -> None:
        """Add to the text of the open cell."""
        if self._text is not None and not self._silent:
            self._text.append(data)

    def _begin_row(self) -> None:
        self._row += 1
        self._column = 0
        if self._row > ROWS_MAX:
            raise TooLarge(f"the page has more than {ROWS_MAX} rows")

    def _end_cell(self) -> None:
        if self._text is None:
            return
        text = " ".join("".join(self._text).split(" ")).strip()
        self._text = None
        self._column += 1
        while self._held.get(self._column, 0):
            self._column += 1
        rows, columns = self._span
        last = min(self._column + columns - 1, COLUMNS_MAX)
        if text:
            self._cells[self._column] = text
        if rows > 1 or columns > 1:
            area = Range(self._row, self._column, self._row + rows - 1, last)
            self._facts.add_merged(str(area))
        for column in range(self._column, last + 1):
            if rows > 1:
                self._held[column] = rows
        self._column = last

    def end_row(self) -> None:
        """Finish the open row."""
        self._end_cell()
        if self._column < 0:
            return
        if self._cells:
            self._ready.append((self._row, self._cells))
            self._cells = {}
        self._held = {column: rows - 1 for column, rows in self._held.items() if rows > 1}
        self._column = -1


def _span(text: str | None) -> int:
    return min(max(int(text), 1), SPAN_MAX) if text and text.isdecimal() else 1
