"""Read SpreadsheetML of Excel 2003, which many programs still export with the suffix .xls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ade_engine.errors import DamagedFile
from ade_engine.sheets.block_builder import NO_VALUE, RowOfValues, build_blocks
from ade_engine.sheets.cells import Block, CellError
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX, Range
from ade_engine.sheets.metadata import BEYOND_LIMIT, SheetMetadata, UnreadSheet
from ade_engine.sheets.read_limits import MIB, ReadLimits
from ade_engine.sheets.safe_xml import Attributes, Feed, attribute, plain_name


class Xml2003Book:
    """A workbook in one XML document."""

    def __init__(self, file: BinaryIO, limits: ReadLimits) -> None:
        self._file = file
        self._limits = limits
        self.sheets: list[str] = []
        self.unread: list[UnreadSheet] = []

        def start(name: str, attributes: Attributes) -> None:
            if plain_name(name) != "Worksheet":
                return
            title = attribute(attributes, "Name")
            if len(self.sheets) < limits.sheets_max:
                self.sheets.append(title)
            else:
                self.unread.append(UnreadSheet(title, BEYOND_LIMIT))

        for _ in self._feed(Feed(start, where="workbook")):
            pass
        if not self.sheets:
            raise DamagedFile("the workbook has no sheet")

    def read(self, index: int, metadata: SheetMetadata) -> Iterator[Block]:
        """Yield the blocks of one sheet."""
        yield from build_blocks(self._rows(index, metadata), self._limits)

    def _rows(self, index: int, metadata: SheetMetadata) -> Iterator[RowOfValues]:
        table = _Table(index, metadata)
        for _ in self._feed(Feed(table.start, table.end, table.text, where="workbook")):
            yield from table.taken()
        yield from table.taken()

    def _feed(self, feed: Feed) -> Iterator[None]:
        self._file.seek(0)
        while piece := self._file.read(MIB):
            feed(piece)
            yield
        feed.close()


class _Table:
    def __init__(self, index: int, metadata: SheetMetadata) -> None:
        self._wanted = index
        self._facts = metadata
        self._sheet = -1
        self._row = 0
        self._column = 0
        self._cells: dict[int, object] = {}
        self._type = ""
        self._data: list[str] | None = None
        self._formula = False
        self._ready: list[RowOfValues] = []

    def taken(self) -> list[RowOfValues]:
        """Return the complete rows and forget them."""
        ready, self._ready = self._ready, []
        return ready

    def start(self, name: str, attributes: Attributes) -> None:
        """Begin a sheet, a row, a cell or its data."""
        name = plain_name(name)
        if name == "Worksheet":
            self._sheet += 1
        if self._sheet != self._wanted:
            return
        match name:
            case "Row":
                self._row = _index(attributes, self._row, ROWS_MAX)
                self._column = 0
                if attribute(attributes, "Hidden") == "1":
                    self._facts.hidden_rows.append(self._row)
            case "Cell":
                self._column = _index(attributes, self._column, COLUMNS_MAX)
                self._formula = bool(attribute(attributes, "Formula"))
                self._merge(attributes)
            case "Data":
                self._type = attribute(attributes, "Type")
                self._data = []
            case "Column" if attribute(attributes, "Hidden") == "1":
                first = attribute(attributes, "Index")
                self._facts.hide_columns(first, first)

    def _merge(self, attributes: Attributes) -> None:
        across = attribute(attributes, "MergeAcross", "0")
        down = attribute(attributes, "MergeDown", "0")
        if across.isdecimal() and down.isdecimal() and int(across) + int(down):
            right = min(self._column + int(across), COLUMNS_MAX)
            bottom = min(self._row + int(down), ROWS_MAX)
            self._facts.add_merged(str(Range(self._row, self._column, bottom, right)))
            self._cells.setdefault(self._column, None)

    def end(self, name: str) -> None:
        """End a cell's data or a row."""
        if self._sheet != self._wanted:
            return
        match plain_name(name):
            case "Data" if self._data is not None:
                value = _value(self._type, "".join(self._data))
                self._cells[self._column] = NO_VALUE if value is None and self._formula else value
                self._data = None
            case "Row" if self._cells:
                self._ready.append((self._row, self._cells))
                self._cells = {}

    def text(self, data: str) -> None:
        """Add to the text of the open cell."""
        if self._data is not None:
            self._data.append(data)


def _index(attributes: Attributes, before: int, highest: int) -> int:
    given = attribute(attributes, "Index")
    number = int(given) if given.isdecimal() else before + 1
    if not before < number <= highest:
        raise DamagedFile("a cell is outside the bounds of a sheet")
    return number


def _number(text: str) -> object:
    return float(text)


def _moment(text: str) -> object:
    moment = dt.datetime.fromisoformat(text)
    return moment.time() if moment.date() == dt.date(1899, 12, 31) else moment


_READERS: dict[str, Callable[[str], object]] = {
    "Number": _number,
    "DateTime": _moment,
    "Boolean": lambda text: text == "1",
    "Error": CellError,
}


def _value(kind: str, text: str) -> object:
    if not text:
        return None
    try:
        return _READERS.get(kind, str)(text)
    except ValueError:
        return text
