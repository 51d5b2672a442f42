"""Scan .xls and .xlsb for what calamine does not report.

That is: which cells show an error, which rows and columns are hidden, and how large the sheet's
rectangle is. Calamine allocates that rectangle, so a single distant cell must be noticed before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from ade_engine.errors import TooLarge, UnreadableFile
from ade_engine.sheets.ole import read_stream
from ade_engine.sheets.read_limits import ReadLimits
from ade_engine.sheets.xlsx.workbook_info import relations
from ade_engine.sheets.zip_reader import ZipReader

ERRORS = {
    0x00: "#NULL!",
    0x07: "#DIV/0!",
    0x0F: "#VALUE!",
    0x17: "#REF!",
    0x1D: "#NAME?",
    0x24: "#NUM!",
    0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}
SPARSE_CELLS = 4_000_000  # a rectangle of more cells than this must be filled
SPARSE_SHARE = 1 / 64  # to at least this share

_UNKNOWN = "#VALUE!"


@dataclass(slots=True)
class LegacyDetails:
    """What was found in one sheet; errors are keyed by (row, column), 1-based."""

    errors: dict[tuple[int, int], str] = field(default_factory=dict)
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: set[int] = field(default_factory=set)
    cells: int = 0
    height: int = 0
    width: int = 0

    def add(self, row: int, column: int, error: int | None = None) -> None:
        """Add a cell (0-based)."""
        self.cells += 1
        self.height = max(self.height, row + 1)
        self.width = max(self.width, column + 1)
        if error is not None:
            self.errors[row + 1, column + 1] = ERRORS.get(error, _UNKNOWN)

    def check(self, limits: ReadLimits) -> None:
        """Reject a sheet whose rectangle is too large to allocate."""
        size = self.height * self.width
        if size > limits.cells_max or (size > SPARSE_CELLS and self.cells < size * SPARSE_SHARE):
            raise TooLarge("a few distant cells make the sheet too large for this file format")


def read_legacy_details(
    file: BinaryIO, file_format: str, limits: ReadLimits
) -> list[LegacyDetails] | None:
    """Scan the sheets of a file; None if the format is another or the scan fails."""
    try:
        if file_format == "xls":
            file.seek(0)
            found = _xls_details(read_stream(file.read(), "Workbook", "Book"))
        elif file_format == "xlsb":
            found = _xlsb_details(ZipReader(file, limits))
        else:
            return None
    except (ValueError, IndexError, struct.error, KeyError, UnreadableFile):
        return None  # calamine reports what is wrong
    for sheet in found:
        sheet.check(limits)
    return found


# --- .xls -----------------------------------------------------------------------------------------

_BOF, _EOF, _SHEET, _ROW, _COLUMN = 0x809, 0x0A, 0x85, 0x208, 0x7D
_ERROR_OR_BOOL, _FORMULA, _MANY_NUMBERS = 0x205, 0x06, 0xBD
_ONE_CELL = {0x203, 0x27E, 0xFD, 0x204, 0xD6}
_RECORD = struct.Struct("<HH")
_PLACE = struct.Struct("<HH")


def _xls_details(stream: bytes) -> list[LegacyDetails]:
    starts = [
        int.from_bytes(data[:4], "little")
        for kind, data in _xls_records(stream, 0)
        if kind == _SHEET and data[5] == 0
    ]
    return [_xls_sheet_details(stream, start) for start in starts]


def _xls_records(stream: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the records between a BOF and its EOF, leaving out nested substreams."""
    depth = 0
    while at + 4 <= len(stream):
        kind, size = _RECORD.unpack_from(stream, at)
        at += 4
        if kind == _BOF:
            depth += 1
        elif kind == _EOF:
            depth -= 1
            if depth <= 0:
                return
        elif depth == 1:
            yield kind, stream[at : at + size]
        at += size


def _xls_sheet_details(stream: bytes, start: int) -> LegacyDetails:
    found = LegacyDetails()
    for kind, data in _xls_records(stream, start):
        if kind in _ONE_CELL:
            found.add(*_place(data))
        elif kind == _FORMULA:
            shows_error = data[12:14] == b"\xff\xff" and data[6] == 2
            found.add(*_place(data), data[8] if shows_error else None)
        elif kind == _MANY_NUMBERS:
            row, first = _place(data)
            last = int.from_bytes(data[-2:], "little")
            found.add(row, last)
            found.cells += last - first
        elif kind == _ERROR_OR_BOOL:
            found.add(*_place(data), data[6] if data[7] else None)
        elif kind == _ROW and data[12] & 0x20:
            found.hidden_rows.append(int.from_bytes(data[:2], "little") + 1)
        elif kind == _COLUMN and data[8] & 0x01:
            first, last = _place(data)
            found.hidden_columns.update(range(first + 1, min(last, 255) + 2))
    return found


def _place(data: bytes) -> tuple[int, int]:
    first, second = _PLACE.unpack_from(data)
    return first, second


# --- .xlsb ----------------------------------------------------------------------------------------

_BUNDLE, _BINARY_ROW, _BINARY_COLUMN = 156, 0, 60
_BINARY_CELLS = range(2, 12)
_BINARY_ERRORS = {3, 11}


def _xlsb_details(archive: ZipReader) -> list[LegacyDetails]:
    main = "xl/workbook.bin"
    targets = relations(archive, main)
    found = []
    for kind, data in _xlsb_records(archive.read(main)):
        if kind == _BUNDLE:
            size = int.from_bytes(data[8:12], "little")
            identity = data[12 : 12 + 2 * size].decode("utf-16-le")
            type_, path = targets[identity]
            if type_.endswith("/worksheet"):
                found.append(_xlsb_sheet_details(archive.read(path)))
    return found


def _xlsb_records(stream: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(stream):
        kind = stream[at]
        at += 1
        if kind & 0x80:
            kind = (kind & 0x7F) | (stream[at] & 0x7F) << 7
            at += 1
        size, shift = 0, 0
        while True:
            byte = stream[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80 or shift >= 28:
                break
        yield kind, stream[at : at + size]
        at += size


def _xlsb_sheet_details(stream: bytes) -> LegacyDetails:
    found, row = LegacyDetails(), 0
    for kind, data in _xlsb_records(stream):
        if kind in _BINARY_CELLS:
            column = int.from_bytes(data[:4], "little")
            found.add(row, column, data[8] if kind in _BINARY_ERRORS else None)
        elif kind == _BINARY_ROW:
            row = int.from_bytes(data[:4], "little")
            if data[11] & 0x10:
                found.hidden_rows.append(row + 1)
        elif kind == _BINARY_COLUMN and data[16] & 0x01:
            first, last = struct.unpack_from("<II", data)
            found.hidden_columns.update(range(first + 1, min(last, 16_383) + 2))
    return found
