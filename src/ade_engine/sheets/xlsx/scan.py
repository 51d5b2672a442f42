"""Read about a megabyte of a sheet's XML at once: find the tags with numpy, then follow them.

Every step works on all cells of a piece together. XML can be written in many ways and
this module knows only the usual one. Anything else raises `FastPathUnsupported`, and the sheet is
read again by `walk`, which knows all of XML and is some twenty times slower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ade_engine.errors import DamagedFile
from ade_engine.sheets import dates
from ade_engine.sheets.arrays import BoolArray, ByteArray, FloatArray, IntArray, WordArray
from ade_engine.sheets.arrow_texts import slice_texts
from ade_engine.sheets.block_builder import NO_TEXT, CellBatch
from ade_engine.sheets.byte_words import MASKS, index_of, whole_numbers, word, words_from_each_byte
from ade_engine.sheets.cells import TIME_DAY, CellKind
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX
from ade_engine.sheets.fast_path_errors import FAST_PATH_ERRORS, FastPathUnsupported
from ade_engine.sheets.xlsx.attributes import AttributeTails, CellType
from ade_engine.sheets.xlsx.unescape import needs_unescape, unescape
from ade_engine.sheets.xlsx.xml_chunks import find_tags

_ROW_START = word(b'<row r="')
_CELL_START = word(b'<c r="')
_CELL_START_MASK = MASKS[6]
_CELL_START_BYTES = 6


@dataclass(frozen=True, slots=True)
class Lookups:
    """What the cells of a workbook refer to."""

    date_styles: BoolArray
    shared_count: int
    blank: IntArray
    """Which shared strings have no characters: a cell with one is empty."""
    epoch_1904: bool
    style_marks: IntArray
    """What the number format of each style says besides the value; see `WorkbookInfo.marks`."""


class Scanner:
    """Turn pieces of XML that hold whole rows into cells."""

    def __init__(self, book: Lookups) -> None:
        self._book = book
        self._tails = AttributeTails(book.date_styles, book.style_marks)

    def scan(self, xml: bytes) -> CellBatch:
        """Read a piece of XML that consists of whole rows and padding."""
        try:
            return _Piece(xml, self._book, self._tails).cells()
        except FAST_PATH_ERRORS as error:
            raise FastPathUnsupported from error


class _Piece:
    def __init__(self, xml: bytes, book: Lookups, tails: AttributeTails) -> None:
        self.xml = xml
        self.buffer: ByteArray = np.frombuffer(xml, np.uint8)
        self.words: WordArray = words_from_each_byte(xml)
        self.book = book
        self.tails = tails
        self.opens, self.closes = find_tags(self.buffer)
        self.names = self.buffer[self.opens + 1]
        self.formulas: IntArray = np.zeros(0, np.int64)
        if (self.names == ord("!")).any() or (self.names == ord("?")).any():
            raise FastPathUnsupported
        # If elements and end tags do not match, the slow reader reports what is wrong.
        ending = np.count_nonzero(self.names == ord("/"))
        single = np.count_nonzero(self.buffer[self.closes - 1] == ord("/"))
        if len(self.names) != 2 * ending + single:
            raise FastPathUnsupported

    def cells(self) -> CellBatch:
        tags = np.flatnonzero(self.names == ord("c"))
        second = self.buffer[self.opens[tags] + 2]
        if not ((second == ord(" ")) | (second == ord(">"))).all():
            tags = tags[(second == ord(" ")) | (second == ord(">")) | (second == ord("/"))]
        rows, columns, tail_starts, hidden, last_row = self._places(tags)
        codes = self.tails.codes(self.buffer, self.words, tail_starts, self.closes[tags])
        types = self.tails.types[codes]
        values, kinds = self._values(tags, self.tails.closed[codes])
        kinds, numbers, text_indexes, own_texts = self._read(
            types, self.tails.dates[codes], values, kinds
        )
        marked = self._marked_columns(columns, codes, kinds)
        kept = kinds != CellKind.EMPTY
        if not kept.all():
            rows, columns, kinds = rows[kept], columns[kept], kinds[kept]
            numbers, text_indexes = numbers[kept], text_indexes[kept]
        return CellBatch(
            rows, columns, kinds, numbers, text_indexes, own_texts, hidden, last_row, marked
        )

    def _marked_columns(
        self, columns: IntArray, codes: IntArray, kinds: ByteArray
    ) -> frozenset[tuple[int, int]]:
        if not self.tails.marks.any():
            return frozenset()
        marks = self.tails.marks[codes]
        here = (marks > 0) & (kinds == CellKind.NUMBER)
        pairs = np.unique(np.stack((columns[here], marks[here])), axis=1)
        return frozenset(zip(*pairs.tolist(), strict=True))

    # --- where the cells are ----------------------------------------------------------------------

    def _places(self, tags: IntArray) -> tuple[IntArray, IntArray, IntArray, list[int], int]:
        """Return rows, columns, the start of each cell's attribute tail, and the hidden rows."""
        row_tags = np.flatnonzero(self.names == ord("r"))
        row_tags = row_tags[self.buffer[self.opens[row_tags] + 2] == ord("o")]
        starts = self.opens[row_tags]
        if not (self.words[starts] == _ROW_START).all():
            raise FastPathUnsupported
        digits = self.words[starts + 8]
        sizes = index_of(digits, b'"').astype(np.int64)
        row_numbers, valid = whole_numbers(digits, np.minimum(sizes, 7))
        if (sizes > 7).any() or not valid.all() or (np.diff(row_numbers) <= 0).any():
            raise FastPathUnsupported
        if len(row_numbers) and not 1 <= row_numbers[0] <= row_numbers[-1] <= ROWS_MAX:
            raise FastPathUnsupported
        bounds = np.searchsorted(tags, row_tags)
        if len(tags) and (not len(bounds) or bounds[0]):
            raise FastPathUnsupported
        counts = np.diff(np.append(bounds, len(tags)))
        rows = np.repeat(row_numbers, counts)
        columns, letters = self._columns(self.opens[tags])
        # After the letters come the digits of the row and a quote, as in the row's own tag.
        at = self.opens[tags] + _CELL_START_BYTES + letters
        masks = MASKS[sizes + 1]
        wanted = np.repeat(digits & masks, counts)
        if not ((self.words[at] & np.repeat(masks, counts)) == wanted).all():
            raise FastPathUnsupported
        tail_starts = at + np.repeat(sizes + 1, counts)
        last_row = int(row_numbers[-1]) if len(row_numbers) else 0
        return rows, columns, tail_starts, self._hidden(row_tags, row_numbers), last_row

    def _columns(self, starts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the columns and the number of letters of each."""
        heads = self.words[starts]
        if not ((heads & _CELL_START_MASK) == _CELL_START).all():
            raise FastPathUnsupported
        pairs = (heads >> np.uint64(48)).astype(np.intp)
        columns, letters = _COLUMNS[pairs], _LETTERS[pairs]
        if not letters.all():
            raise FastPathUnsupported
        if (letters == 2).any():
            third = self.buffer[starts + 8].astype(np.int64) - ord("A") + 1
            long = (letters == 2) & (third >= 1) & (third <= 26)
            columns = np.where(long, columns * 26 + third, columns)
            letters = letters + long
            if columns.max() > COLUMNS_MAX:
                raise FastPathUnsupported
        return columns, letters

    def _hidden(self, row_tags: IntArray, row_numbers: IntArray) -> list[int]:
        if b' hidden="' not in self.xml:
            return []
        pairs = zip(self.opens[row_tags].tolist(), self.closes[row_tags].tolist(), strict=True)
        return [
            number
            for number, (start, end) in zip(row_numbers.tolist(), pairs, strict=True)
            if b' hidden="1"' in (tag := self.xml[start:end]) or b' hidden="true"' in tag
        ]

    # --- where the values are ---------------------------------------------------------------------

    def _values(
        self, tags: IntArray, closed: BoolArray
    ) -> tuple[tuple[IntArray, IntArray], ByteArray]:
        """Return the start and end of each value, and EMPTY, NO_VALUE or TEXT (some value)."""
        kinds = np.full(len(tags), CellKind.TEXT, np.uint8)
        next_tags = np.minimum(tags + 1, len(self.names) - 1)
        nexts = self.names[next_tags]
        plain = nexts == ord("v")
        if not plain.all() or closed.any():
            self._follow(next_tags, nexts, closed, kinds)
        starts, ends = (
            self.closes[next_tags] + 1,
            self.opens[np.minimum(next_tags + 1, len(self.opens) - 1)],
        )
        valued = kinds == CellKind.TEXT
        self_closed = self.buffer[self.closes[next_tags] - 1] == ord("/")
        if (valued & self_closed).any():
            ends = np.where(self_closed, starts, ends)
        elif (self.buffer[ends + 1] != ord("/"))[valued].any():
            raise FastPathUnsupported
        return (starts, ends), kinds

    def _follow(
        self,
        next_tags: IntArray,
        nexts: ByteArray,
        closed: BoolArray,
        kinds: ByteArray,
    ) -> None:
        """Step over formulas and into inline strings, to the tag that holds the value."""
        kinds[closed | (nexts == ord("/"))] = CellKind.EMPTY
        opened = ~closed
        formulas = np.flatnonzero(opened & (nexts == ord("f")))
        inlines = np.flatnonzero(opened & (nexts == ord("i")))
        known = closed | (nexts == ord("v")) | (nexts == ord("/"))
        known[formulas] = known[inlines] = True
        if not known.all():
            raise FastPathUnsupported
        self.formulas = formulas
        if len(formulas):
            at = next_tags[formulas]
            single = self.buffer[self.closes[at] - 1] == ord("/")
            at = np.minimum(at + np.where(single, 1, 2), len(self.names) - 1)
            names = self.names[at]
            if not ((names == ord("v")) | (names == ord("/"))).all():
                raise FastPathUnsupported
            next_tags[formulas] = at
            kinds[formulas[names == ord("/")]] = CellKind.NO_VALUE
        if len(inlines):
            at = np.minimum(next_tags[inlines] + 1, len(self.names) - 1)
            single = self.buffer[self.closes[at] - 1] == ord("/")
            behind = np.minimum(at + np.where(single, 1, 2), len(self.names) - 1)
            # Only <is><t>...</t></is>; rich text is left to the slow reader.
            ends_there = (self.names[behind] == ord("/")) & (
                self.buffer[self.opens[behind] + 2] == ord("i")
            )
            if not ((self.names[at] == ord("t")) & ends_there).all():
                raise FastPathUnsupported
            next_tags[inlines] = at

    # --- what the values are ----------------------------------------------------------------------

    def _read(
        self,
        types: ByteArray,
        dated: BoolArray,
        values: tuple[IntArray, IntArray],
        kinds: ByteArray,
    ) -> tuple[ByteArray, FloatArray, IntArray, pl.Series]:
        starts, ends = values
        numbers = np.full(len(kinds), np.nan)
        text_indexes = np.full(len(kinds), NO_TEXT, np.int64)
        valued = kinds == CellKind.TEXT
        if (valued & (starts == ends)).any():
            nothing = valued & (starts == ends)
            kinds[nothing] = CellKind.EMPTY
            uncached = self.formulas[(nothing & (types == CellType.NUMBER))[self.formulas]]
            kinds[uncached] = CellKind.NO_VALUE
            valued &= ~nothing

        at = np.flatnonzero(valued & (types == CellType.SHARED))
        if len(at):
            indexes = self._shared(starts[at], ends[at])
            text_indexes[at] = indexes
            if len(self.book.blank):
                kinds[at[np.isin(indexes, self.book.blank)]] = CellKind.EMPTY

        is_text = (types >= CellType.TEXT) & valued
        at = np.flatnonzero(is_text)
        own_texts = pl.Series(dtype=pl.String)
        if len(at):
            own_texts = self._texts(starts[at], ends[at])
            text_indexes[at] = np.arange(len(at)) + self.book.shared_count
            kinds[at[types[at] == CellType.ERROR]] = CellKind.ERROR
            iso = np.flatnonzero(types[at] == CellType.DATE)
            if len(iso):
                ms, valid = iso_dates(own_texts.gather(iso))
                found = at[iso[valid]]
                kinds[found], numbers[found] = CellKind.DATE, ms[valid]
                text_indexes[found] = NO_TEXT

        at = np.flatnonzero(valued & (types == CellType.BOOL))
        if len(at):
            first = self.buffer[starts[at]]
            kinds[at] = CellKind.BOOL
            numbers[at] = (first == ord("1")) | (first == ord("t"))

        at = np.flatnonzero(valued & (types == CellType.NUMBER))
        if len(at):
            kinds[at], numbers[at] = self._numbers(starts[at], ends[at], dated[at])
        return kinds, numbers, text_indexes, own_texts

    def _shared(self, starts: IntArray, ends: IntArray) -> IntArray:
        indexes, valid = whole_numbers(self.words[starts], ends - starts)
        if not valid.all():
            raise FastPathUnsupported
        if len(indexes) and indexes.max() >= self.book.shared_count:
            raise DamagedFile("a cell refers to a shared string that does not exist")
        return indexes

    def _texts(self, starts: IntArray, ends: IntArray) -> pl.Series:
        try:
            found = slice_texts(self.xml, self.words, starts, ends)
        except pl.exceptions.PolarsError as error:
            raise DamagedFile("a text is not UTF-8") from error
        return unescape(found) if needs_unescape(self.xml) else found

    def _numbers(
        self, starts: IntArray, ends: IntArray, dated: BoolArray
    ) -> tuple[ByteArray, FloatArray]:
        kinds = np.full(len(starts), CellKind.NUMBER, np.uint8)
        whole, valid = whole_numbers(self.words[starts], ends - starts)
        numbers = whole.astype(np.float64)
        rest = np.flatnonzero(~valid)
        if len(rest):
            written = slice_texts(self.xml, self.words, starts[rest], ends[rest])
            numbers[rest] = written.cast(pl.Float64, strict=False).to_numpy()  # null is NaN
            if not np.isfinite(numbers).all():
                raise FastPathUnsupported
        if dated.any():
            ms, possible = dates.from_serials(numbers[dated], epoch_1904=self.book.epoch_1904)
            at = np.flatnonzero(dated)[possible]
            kinds[at], numbers[at] = CellKind.DATE, ms[possible]
        return kinds, numbers


def iso_dates(texts: pl.Series) -> tuple[FloatArray, BoolArray]:
    """Parse ISO 8601 dates, and mark the texts that are dates."""
    cut = texts.str.strip_chars_end("Z").str.replace(" ", "T", literal=True)
    whole = (
        pl.when(cut.str.contains("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))
        .then(cut + "T00:00:00")
        .when(cut.str.contains("^[0-9]{2}:"))
        .then(pl.lit(f"{TIME_DAY}T") + cut)
        .otherwise(cut)
    )
    moments = (
        pl.select(whole.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="ms"))
        .to_series()
        .cast(pl.Int64)
        .cast(pl.Float64)
        .fill_null(np.nan)
        .to_numpy()
    )
    return moments, np.isfinite(moments)


def _column_tables() -> tuple[IntArray, IntArray]:
    """Make lookup tables from the first two characters of a reference to column and letters."""
    columns, letters = np.zeros(65_536, np.int64), np.zeros(65_536, np.int64)
    for first in range(26):
        for digit in b"123456789":
            columns[65 + first + (digit << 8)] = first + 1
            letters[65 + first + (digit << 8)] = 1
        for second in range(26):
            columns[65 + first + ((65 + second) << 8)] = (first + 1) * 26 + second + 1
            letters[65 + first + ((65 + second) << 8)] = 2
    return columns, letters


_COLUMNS, _LETTERS = _column_tables()
