"""Read a sheet element by element, however its XML is written; some twenty times slower."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from ade_engine.errors import DamagedFile
from ade_engine.sheets import dates
from ade_engine.sheets.block_builder import NO_TEXT, CellBatch
from ade_engine.sheets.cells import CellKind
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX, column_number
from ade_engine.sheets.safe_xml import Attributes, Feed, Start, plain_name
from ade_engine.sheets.xlsx.attributes import TYPES, CellType
from ade_engine.sheets.xlsx.scan import Lookups, iso_dates
from ade_engine.sheets.xlsx.unescape import decode_escape

BATCH_CELLS = 100_000
_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")


class Walker:
    """Collect the cells of a sheet while its XML is parsed."""

    def __init__(self, book: Lookups) -> None:
        self._date_styles = book.date_styles
        self._style_marks = book.style_marks
        self._marked: set[tuple[int, int]] = set()
        self._shared_count = book.shared_count
        self._blank = frozenset(book.blank.tolist())
        self._epoch_1904 = book.epoch_1904
        self._row = 0
        self._column = 0
        self._cell: Attributes = {}
        self._value: list[str] | None = None
        self._formula = False
        self._inside_rows = False
        self._depth_phonetic = 0
        self._collecting = False
        self._hidden: list[int] = []
        self._ready: list[CellBatch] = []
        self._clear()

    def _clear(self) -> None:
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._kinds: list[int] = []
        self._numbers: list[float] = []
        self._texts: list[int] = []
        self._own: list[str] = []
        self._dated: list[bool] = []

    def walk(self, stream: Iterable[bytes], beside: Start) -> Iterator[CellBatch]:
        """Yield the cells in batches of whole rows; call `beside` for elements outside the rows."""
        self._beside = beside
        feed = Feed(self._start, self._end, self._text, where="a sheet")
        for piece in stream:
            feed(piece)
            yield from self._ready
            self._ready.clear()
        feed.close()
        yield from self._ready
        yield self._taken()

    def _start(self, name: str, attributes: Attributes) -> None:
        match plain_name(name):
            case "c" if self._inside_rows:
                self._begin_cell(attributes)
            case "row" if self._inside_rows:
                self._begin_row(attributes)
            case "v" | "t" as tag:
                inline = self._cell.get("t") == "inlineStr"
                self._collecting = inline == (tag == "t") and not self._depth_phonetic
                if self._collecting and self._value is None:
                    self._value = []
            case "f":
                self._formula = True
            case "rPh":
                self._depth_phonetic += 1
            case "sheetData":
                self._inside_rows = True
            case _ if not self._inside_rows:
                self._beside(name, attributes)

    def _end(self, name: str) -> None:
        match plain_name(name):
            case "c" if self._inside_rows:
                self._finish_cell()
            case "v" | "t":
                self._collecting = False
            case "rPh":
                self._depth_phonetic -= 1
            case "sheetData":
                self._inside_rows = False

    def _text(self, data: str) -> None:
        if self._collecting and self._value is not None:
            self._value.append(data)

    def _begin_row(self, attributes: Attributes) -> None:
        if len(self._rows) >= BATCH_CELLS:
            self._ready.append(self._taken())
        number = attributes.get("r", "")
        self._row = int(number) if number.isdecimal() else self._row + 1
        self._column = 0
        if attributes.get("hidden") in ("1", "true"):
            self._hidden.append(self._row)

    def _begin_cell(self, attributes: Attributes) -> None:
        self._cell, self._value, self._formula = attributes, None, False
        found = _REFERENCE.fullmatch(attributes.get("r", ""))
        if found:
            try:
                self._column = column_number(found[1])
            except ValueError:
                raise DamagedFile("a cell is outside the bounds of a sheet") from None
            self._row = int(found[2])
        else:
            self._column += 1
        if not (1 <= self._row <= ROWS_MAX and self._column <= COLUMNS_MAX):
            raise DamagedFile("a cell is outside the bounds of a sheet")

    def _finish_cell(self) -> None:
        kind = TYPES.get(self._cell.get("t", "n"), CellType.TEXT)
        value = "".join(self._value or ())
        if kind in (CellType.NUMBER, CellType.SHARED, CellType.BOOL):
            value = value.strip()
        if not value:
            if self._formula and (self._value is None or kind == CellType.NUMBER):
                self._add(CellKind.NO_VALUE)
            return
        match kind:
            case CellType.NUMBER:
                self._add_number(value)
            case CellType.SHARED:
                if not value.isdecimal() or int(value) >= self._shared_count:
                    raise DamagedFile("a cell refers to a shared string that does not exist")
                if int(value) not in self._blank:
                    self._add(CellKind.TEXT, text=int(value))
            case CellType.BOOL:
                self._add(CellKind.BOOL, float(value in ("1", "true")))
            case CellType.ERROR:
                self._add_text(CellKind.ERROR, value)
            case CellType.DATE:
                ms, valid = iso_dates(pl.Series([value]))
                if valid[0]:
                    self._add(CellKind.DATE, float(ms[0]))
                else:
                    self._add_text(CellKind.TEXT, value)
            case _:
                self._add_text(CellKind.TEXT, decode_escape(value))

    def _add_number(self, value: str) -> None:
        try:
            number = float(value)
        except ValueError:
            self._add_text(CellKind.TEXT, value)
            return
        if not np.isfinite(number):
            self._add_text(CellKind.ERROR, "#NUM!")
            return
        style = self._cell.get("s", "")
        known = style.isdecimal() and int(style) < len(self._date_styles)
        if known and (mark := int(self._style_marks[int(style)])):
            self._marked.add((self._column, mark))
        self._add(CellKind.NUMBER, number, dated=known and bool(self._date_styles[int(style)]))

    def _add_text(self, kind: CellKind, text: str) -> None:
        self._add(kind, text=self._shared_count + len(self._own))
        self._own.append(text)

    def _add(
        self, kind: CellKind, number: float = np.nan, text: int = NO_TEXT, *, dated: bool = False
    ) -> None:
        self._rows.append(self._row)
        self._columns.append(self._column)
        self._kinds.append(kind)
        self._numbers.append(number)
        self._texts.append(text)
        self._dated.append(dated)

    def _taken(self) -> CellBatch:
        kinds = np.array(self._kinds, np.uint8)
        numbers = np.array(self._numbers, np.float64)
        at = np.flatnonzero(np.array(self._dated, np.bool_))
        if len(at):
            ms, possible = dates.from_serials(numbers[at], epoch_1904=self._epoch_1904)
            kinds[at[possible]], numbers[at[possible]] = CellKind.DATE, ms[possible]
        cells = CellBatch(
            np.array(self._rows, np.int64),
            np.array(self._columns, np.int64),
            kinds,
            numbers,
            np.array(self._texts, np.int64),
            pl.Series(self._own, dtype=pl.String),
            self._hidden,
            self._row,
            frozenset(self._marked),
        )
        self._clear()
        self._hidden = []
        return cells
