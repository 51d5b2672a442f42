"""Read .csv and .tsv: find cell boundaries with numpy, and leave unusual quoting to csv.

A row is a record: an empty line is a record, and a line break inside quotes does not start one.
Every cell is text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
import polars as pl

from ade_engine.errors import TooLarge
from ade_engine.sheets.arrays import BoolArray, ByteArray, IntArray
from ade_engine.sheets.arrow_texts import slice_texts
from ade_engine.sheets.block_builder import BlockBuilder, CellBatch
from ade_engine.sheets.byte_words import PADDING, words_from_each_byte
from ade_engine.sheets.cells import Block, CellKind
from ade_engine.sheets.coordinates import COLUMNS_MAX
from ade_engine.sheets.delimiter import detect_delimiter
from ade_engine.sheets.encoding import detect_encoding, utf8_pieces
from ade_engine.sheets.fast_path_errors import FastPathUnsupported
from ade_engine.sheets.read_limits import MIB, ReadLimits

SAMPLE_CHARS = 262_144
RECORDS = 20_000  # read at once by the csv module

_QUOTE, _NEWLINE = ord('"'), ord("\n")


class DelimitedBook:
    """A text file whose encoding and delimiter are known."""

    def __init__(self, file: BinaryIO, limits: ReadLimits) -> None:
        self._file = file
        self._limits = limits
        self.encoding = detect_encoding(file)
        sample = b""
        for piece in utf8_pieces(file, self.encoding):
            sample += piece
            if len(sample) >= SAMPLE_CHARS:
                break
        text = sample[:SAMPLE_CHARS].decode("utf-8", "ignore").replace("\0", "")
        self.delimiter = detect_delimiter(text)

    def read(self) -> Iterator[Block]:
        """Yield the blocks by the fast path; raise `FastPathUnsupported` if `reread` is needed."""
        scan = _Scan(self.delimiter, self._limits)
        yield from self._assemble(scan.cells(utf8_pieces(self._file, self.encoding)))

    def reread(self) -> Iterator[Block]:
        """Yield the blocks however the file is quoted."""
        pieces = utf8_pieces(self._file, self.encoding)
        yield from self._assemble(_walk(pieces, self.delimiter, self._limits))

    def _assemble(self, source: Iterator[CellBatch]) -> Iterator[Block]:
        assembler = BlockBuilder()
        count = 0
        for cells in source:
            count += len(cells.rows)
            if count > self._limits.cells_max:
                raise TooLarge(f"the file has more than {self._limits.cells_max} cells (cells_max)")
            yield from assembler.add(cells)
        yield from assembler.flush()


class _Scan:
    def __init__(self, delimiter: str, limits: ReadLimits) -> None:
        self._delimiter = ord(delimiter)
        self._limits = limits
        self._row = 0

    def cells(self, pieces: Iterable[bytes]) -> Iterator[CellBatch]:
        carry = b""
        for piece in pieces:
            text = carry + piece
            held = (
                b"\r" if text.endswith(b"\r") else b""
            )  # it may be the first half of a line ending
            text = _plain(text[: len(text) - len(held)])
            found = self._records(text)
            if found is None:
                carry = text + held
                if len(carry) > self._limits.row_bytes_max:
                    limit = self._limits.row_bytes_max // MIB
                    raise TooLarge(f"a row is longer than {limit} MiB (row_bytes_max)")
                continue
            cells, end = found
            yield cells
            carry = text[end:] + held
        if carry:
            found = self._records(_plain(carry.removesuffix(b"\r")) + b"\n")
            if found is None or found[1] < len(carry.removesuffix(b"\r")):
                raise FastPathUnsupported  # an unterminated quote
            yield found[0]

    def _records(self, text: bytes) -> tuple[CellBatch, int] | None:
        """Read the complete records of a text that begins with one, and return where they end."""
        buffer = np.frombuffer(text, np.uint8)
        marks = np.flatnonzero((buffer == self._delimiter) | (buffer == _NEWLINE))
        if b'"' in text:
            marks = marks[self._outside(buffer, marks)]
        breaks = np.flatnonzero(buffer[marks] == _NEWLINE)
        if not len(breaks):
            return None
        marks = marks[: breaks[-1] + 1]
        starts = np.empty(len(marks), np.int64)
        starts[0] = 0
        starts[1:] = marks[:-1] + 1
        counts = np.diff(breaks, prepend=-1)
        if counts.max() > COLUMNS_MAX:
            raise TooLarge(f"a row has more than {COLUMNS_MAX} cells")
        rows = np.repeat(np.arange(len(breaks)) + self._row + 1, counts)
        first_marks = np.repeat(np.concatenate(([0], breaks[:-1] + 1)), counts)
        columns = np.arange(len(marks)) - first_marks + 1
        self._row += len(breaks)
        cells = _cells(text, starts, marks, rows, columns, quoted=b'"' in text)
        return cells, int(marks[-1]) + 1

    def _outside(self, buffer: ByteArray, marks: IntArray) -> BoolArray:
        """Mark the separators outside of quotes; quotes must be where RFC 4180 allows them."""
        quotes = np.flatnonzero(buffer == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        allowed = np.zeros(256, np.bool_)
        allowed[[self._delimiter, _NEWLINE, _QUOTE]] = True
        before = buffer[np.maximum(opening - 1, 0)]
        after = buffer[np.minimum(closing + 1, len(buffer) - 1)]
        if not (allowed[before] | (opening == 0)).all():
            raise FastPathUnsupported
        if not (allowed[after] | (closing == len(buffer) - 1)).all():
            raise FastPathUnsupported
        # A quote after a quote must be an escaped quote: "" inside quotes, never a"b""c.
        doubled = opening[1:][before[1:] == _QUOTE]
        if len(doubled) and not np.isin(doubled - 1, closing).all():
            raise FastPathUnsupported
        outside: BoolArray = np.searchsorted(quotes, marks) % 2 == 0
        return outside


def _plain(text: bytes) -> bytes:
    if b"\0" in text:
        text = text.replace(b"\0", b"")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
        if b"\r" in text:
            raise FastPathUnsupported
    return text


def _cells(
    text: bytes,
    starts: IntArray,
    ends: IntArray,
    rows: IntArray,
    columns: IntArray,
    *,
    quoted: bool,
) -> CellBatch:
    padded = text + PADDING
    in_quotes = None
    if quoted:
        buffer = np.frombuffer(padded, np.uint8)
        in_quotes = (buffer[starts] == _QUOTE) & (ends > starts)
        starts, ends = starts + in_quotes, ends - in_quotes
    kept = ends > starts
    if not kept.all():
        starts, ends, rows, columns = starts[kept], ends[kept], rows[kept], columns[kept]
        in_quotes = in_quotes[kept] if in_quotes is not None else None
    found = slice_texts(padded, words_from_each_byte(padded), starts, ends)
    if in_quotes is not None and in_quotes.any():
        found = found.str.replace_all('""', '"', literal=True)
    return _text_cells(rows, columns, found)


def _walk(pieces: Iterable[bytes], delimiter: str, limits: ReadLimits) -> Iterator[CellBatch]:
    """Read with the csv module, which accepts quotes anywhere."""
    csv.field_size_limit(limits.row_bytes_max)
    stream = io.TextIOWrapper(io.BufferedReader(_Pieces(pieces)), "utf-8", newline="")
    reader = csv.reader((line.replace("\0", "") for line in stream), delimiter=delimiter)
    rows: list[int] = []
    columns: list[int] = []
    texts: list[str] = []
    row = 0
    try:
        for row, record in enumerate(reader, 1):
            if len(record) > COLUMNS_MAX:
                raise TooLarge(f"a row has more than {COLUMNS_MAX} cells")
            for column, text in enumerate(record, 1):
                if text:
                    rows.append(row)
                    columns.append(column)
                    texts.append(text)
            if row % RECORDS == 0:
                yield _text_cells(np.array(rows), np.array(columns), pl.Series(texts))
                rows, columns, texts = [], [], []
    except csv.Error as error:
        limit = limits.row_bytes_max // MIB
        raise TooLarge(f"a cell is longer than {limit} MiB (row_bytes_max)") from error
    made = pl.Series(texts, dtype=pl.String)
    yield _text_cells(np.array(rows, np.int64), np.array(columns, np.int64), made)


def _text_cells(rows: IntArray, columns: IntArray, texts: pl.Series) -> CellBatch:
    count = len(rows)
    return CellBatch(
        rows,
        columns,
        np.full(count, CellKind.TEXT, np.uint8),
        np.full(count, np.nan),
        np.arange(count),
        texts,
        [],
        int(rows[-1]) if count else 0,
    )


class _Pieces(io.RawIOBase):
    """Wrap an iterable of bytes as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        size = min(len(target), len(self._left))
        target[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
