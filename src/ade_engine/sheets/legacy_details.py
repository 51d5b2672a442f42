"""Scan .xls and .xlsb for what calamine does not report, or reports wrongly.

That is: which cells show an error, which rows and columns are hidden, and how large the sheet's
rectangle is. Calamine allocates that rectangle, so a single distant cell must be noticed before.

Calamine also takes the numbers that a chart in a .xls sheet caches for cells of the sheet, and
decodes texts by the code page that the file names even where the format says UTF-16. `corrected` is
a copy of such a file without these traps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from ade_engine.errors import NoCells, TooLarge, UnreadableFile
from ade_engine.sheets.metadata import UnreadSheet, no_sheet_with_cells
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


@dataclass(frozen=True, slots=True)
class LegacyScan:
    """What was found in a file: details of each sheet, and the file to read if not this one."""

    sheets: list[LegacyDetails]
    corrected: bytes | None = None


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


def scan_legacy(file: BinaryIO, file_format: str, limits: ReadLimits) -> LegacyScan | None:
    """Scan the sheets of a file; None if the format is another or the scan fails."""
    try:
        if file_format == "xls":
            file.seek(0)
            found = _scan_xls(file.read())
        elif file_format == "xlsb":
            found = LegacyScan(_xlsb_details(ZipReader(file, limits)))
        else:
            return None
    except NoCells:
        raise
    except (ValueError, IndexError, struct.error, KeyError, UnreadableFile):
        return None  # calamine reports what is wrong
    for sheet in found.sheets:
        sheet.check(limits)
    return found


# --- .xls -----------------------------------------------------------------------------------------

_BOF, _EOF, _SHEET, _ROW, _COLUMN = 0x809, 0x0A, 0x85, 0x208, 0x7D
_ERROR_OR_BOOL, _FORMULA, _MANY_NUMBERS = 0x205, 0x06, 0xBD
_CODE_PAGE, _ENCRYPTED = 0x42, 0x2F
_ONE_CELL = {0x203, 0x27E, 0xFD, 0x204, 0xD6}
_RECORD = struct.Struct("<HH")
_PLACE = struct.Struct("<HH")
_UNKNOWN_RECORD = b"\xfe\x0f"  # readers skip what they do not know
_UTF_16, _WESTERN = 1200, 1252
_SHEET_KINDS = {1: "macro", 2: "chart", 6: "macro"}


def _scan_xls(content: bytes) -> LegacyScan:
    stream = read_stream(content, "Workbook", "Book")
    starts: list[int] = []
    others: list[UnreadSheet] = []
    patches: list[tuple[int, bytes]] = []
    version = int.from_bytes(stream.content[4:6], "little")
    for kind, at, data in _xls_records(stream.content, 0):
        if kind == _ENCRYPTED:
            raise ValueError
        if kind == _SHEET and data[5] == 0:
            starts.append(int.from_bytes(data[:4], "little"))
        elif kind == _SHEET:
            others.append(UnreadSheet("", _SHEET_KINDS.get(data[5], "macro")))
        elif kind == _CODE_PAGE:
            patches += _code_page_patch(at, data, is_biff8=version == _BIFF8)
    if others and not starts:
        raise no_sheet_with_cells(others)
    sheets = [_xls_sheet_details(stream.content, start, patches) for start in starts]
    if not patches:
        return LegacyScan(sheets)
    corrected = bytearray(content)
    for at, data in patches:
        stream.overwrite(corrected, at, data)
    return LegacyScan(sheets, bytes(corrected))


_BIFF8 = 0x0600


def _code_page_patch(at: int, data: bytes, *, is_biff8: bool) -> list[tuple[int, bytes]]:
    """Name the code page that the format prescribes: UTF-16 in BIFF8, one byte before."""
    named = int.from_bytes(data[:2], "little")
    right = _UTF_16 if is_biff8 else _WESTERN if named == _UTF_16 else named
    return [] if named == right else [(at + _RECORD.size, right.to_bytes(2, "little"))]


def _xls_records(
    stream: bytes, at: int, patches: list[tuple[int, bytes]] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Yield (kind, place, data) of the records between a BOF and its EOF.

    Nested substreams are left out. They are charts; `patches` receives what makes their records
    unknown to other readers.
    """
    depth = 0
    while at + 4 <= len(stream):
        kind, size = _RECORD.unpack_from(stream, at)
        place = at
        at += 4
        if kind == _BOF:
            depth += 1
        nested = depth > 1
        if kind == _EOF:
            depth -= 1
            if depth <= 0:
                return
        elif depth == 1 and kind != _BOF:
            yield kind, place, stream[at : at + size]
        if nested and patches is not None:
            patches.append((place, _UNKNOWN_RECORD))
        at += size


def _xls_sheet_details(
    stream: bytes, start: int, patches: list[tuple[int, bytes]]
) -> LegacyDetails:
    found = LegacyDetails()
    for kind, _, data in _xls_records(stream, start, patches):
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
