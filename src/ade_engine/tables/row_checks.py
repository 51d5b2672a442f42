"""Check the kinds of rows after the header of a table, and give the reason for each row left out.

The model predicts each row from its neighbours, and sees no end of the data. Here each row between
one header and the next is compared with the data of its table, column by column:

- a row that is as full as the data and has values of the same types is data;
- a sparse row after the last full row is not data if it comes after a blank row or a total, lacks
  the value that every data row begins with, has a text where the data has values, or is a remark;
- rows after a blank row whose cells do not fit the columns are not data;
- rows of one cell are headings if the data begins with one and a full row follows each, or if a
  header follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray
from ade_engine.tables.regions import RowKind, SkipReason
from ade_engine.tables.row_cells import RowCells

DATA_ROWS_MIN = 3  # fewer data rows say too little about the columns
SPARSE_SHARE = 0.5  # of the cells of a usual data row
FULL_SHARE = 0.8
ALWAYS_SHARE = 0.95  # of the data rows that have a value in the first column
TYPE_SHARE = 0.9  # of the values of a column that are of one type
MISFIT_SHARE = 0.5  # of a row's cells that do not fit their columns
BLOCKS_MAX = 3  # with more blank rows in the data, a blank row says nothing
SUM_TOLERANCE = 1e-3
REMARK_CHARACTERS_MIN = 30
REMARK_LENGTH_RATIO = 2
HEADED_CELLS_MIN = 3  # cells of a usual row; with fewer, a row of one cell may be a record
HEADINGS_MIN = 2
HEADINGS_SHARE_MAX = 0.3  # of the rows; records without values may be more
KEPT_KINDS = (RowKind.NOTE, RowKind.GROUP, RowKind.FOOTER, RowKind.PREAMBLE)
HEADER_KINDS = ("header", "header_end")

_PAGE = re.compile(
    r"\W*(?:page|seite|página|pagina|p\.|blatt)\s*\d+(?:\s*(?:of|/|von|de|di|sur)\s*\d+)?\W*", re.I
)
_REMARK = re.compile(r"(?:notes?|sources?|remarks?|quelle|anmerkung|fuente)\b\s*[:.]|[*†‡]", re.I)


class RowChecks:
    """Correct the kinds of rows, and collect the reasons for those that are not data."""

    def __init__(self, kinds: Sequence[str], cells: RowCells, ruled: BoolArray) -> None:
        """Take rows that are not blank; `ruled` marks those that a row detector decided."""
        self.kinds = list(kinds)
        self._cells = cells
        self._ruled = ruled
        self._changed: dict[int, str] = {}

    def check(self) -> None:
        """Check every stretch of rows after a header."""
        for first, last in self._stretches():
            self._page_footers(first, last)
            data = self._data(first, last)
            if len(data) >= DATA_ROWS_MIN:
                _Body(self, self._cells, first, last, data).check()

    def reasons(self, says_total: BoolArray) -> tuple[str, ...]:
        """Return the reason for each row that is left out, "" for header and data."""
        return tuple(self._reason(index, says_total) for index in range(len(self.kinds)))

    def change(self, index: int, kind: str, reason: str = "") -> None:
        """Change the kind of a row, unless a row detector decided it."""
        if not self._ruled[index]:
            self.kinds[index] = kind
            self._changed[index] = reason

    def _reason(self, index: int, says_total: BoolArray) -> str:
        kind = self.kinds[index]
        if kind == RowKind.DATA or kind in HEADER_KINDS:
            return ""
        if self._ruled[index]:
            return SkipReason.ROW_DETECTOR
        if self._changed.get(index):
            return self._changed[index]
        if kind == RowKind.TOTAL:
            return SkipReason.SAYS_TOTAL if says_total[index] else SkipReason.ADDS_UP
        return SkipReason.SINGLE_CELL if self._cells.count[index] == 1 else SkipReason.MODEL

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Yield the rows (first, last + 1) between two headers."""
        heads = [kind in HEADER_KINDS for kind in self.kinds]
        start = 0
        for index, head in enumerate([*heads, True]):
            if head:
                if index > start:
                    yield start, index
                start = index + 1

    def _page_footers(self, first: int, last: int) -> None:
        alone = np.flatnonzero(self._cells.count[first:last] == 1) + first
        for index in alone.tolist():
            if _PAGE.fullmatch("".join(self._cells.texts[index])):
                self.change(index, RowKind.NOTE, SkipReason.PAGE_FOOTER)

    def _data(self, first: int, last: int) -> IntArray:
        return np.array(
            [index for index in range(first, last) if self.kinds[index] == RowKind.DATA], dtype=int
        )


class _Body:
    """The rows after one header, compared with the data among them."""

    def __init__(
        self, rows: RowChecks, cells: RowCells, first: int, last: int, data: IntArray
    ) -> None:
        self._rows = rows
        self._cells = cells
        self._first, self._last = first, last
        self._usual = float(np.median(cells.count[data]))
        typical = data[cells.count[data] > SPARSE_SHARE * self._usual]
        filled = cells.filled[typical].sum(axis=0)
        words = cells.words[typical].sum(axis=0)
        values = cells.values[typical].sum(axis=0)
        known = filled >= DATA_ROWS_MIN
        self._of_words = known & (words >= TYPE_SHARE * filled)
        self._of_values = known & (values >= TYPE_SHARE * filled)
        self._unused = filled == 0
        always = np.flatnonzero(filled >= ALWAYS_SHARE * len(typical))
        self._key = int(always[0]) if len(always) else None
        self._typical = typical

    def check(self) -> None:
        if self._usual < 2:
            return
        self._restore_data()
        self._check_headings()
        end = int(self._typical[-1]) + 1
        self._check_sparse(end)
        self._check_last_blocks()

    def _misfits(self, index: int) -> int:
        """Count the cells that do not fit their columns."""
        cells = self._cells
        misfit = (cells.words[index] & self._of_values) | (cells.values[index] & self._of_words)
        return int((misfit | (cells.filled[index] & self._unused)).sum())

    def _is_sparse(self, index: int) -> bool:
        return bool(self._cells.count[index] <= max(1, SPARSE_SHARE * self._usual))

    def _restore_data(self) -> None:
        """Make data of rows that are as full as the data and fit its columns."""
        rows, cells = self._rows, self._cells
        for index in range(self._first, self._last):
            full = cells.count[index] >= max(2, FULL_SHARE * self._usual)
            if full and rows.kinds[index] in KEPT_KINDS and not self._misfits(index):
                fits = (cells.values[index] & self._of_values).any() or not self._of_values.any()
                if fits and self._typical[0] < index:
                    rows.change(index, RowKind.DATA)

    def _check_headings(self) -> None:
        """Make headings of rows of one cell, if the data begins with one or a header follows it."""
        cells, rows = self._cells, self._rows
        if self._usual < HEADED_CELLS_MIN:
            return
        alone = [
            index
            for index in range(self._first, self._last)
            if cells.count[index] == 1 and cells.words[index].any()
        ]
        apart = all(
            index + 1 < self._last and not self._is_sparse(index + 1) and not cells.gaps[index + 1]
            for index in alone
        )
        few = len(alone) <= HEADINGS_SHARE_MAX * (self._last - self._first)
        if len(alone) >= HEADINGS_MIN and alone[0] == self._first and apart and few:
            found = alone
        else:
            before_header = self._last < len(cells) and self._last - 1 in alone
            found = [self._last - 1] if before_header else []
        for index in found:
            if rows.kinds[index] == RowKind.DATA:
                rows.change(index, RowKind.GROUP, SkipReason.SINGLE_CELL)

    def _check_sparse(self, end: int) -> None:
        """Leave out the sparse rows after the last full row that are not like the data."""
        rows, cells = self._rows, self._cells
        apart = False
        gap_counts = self._blocks() <= BLOCKS_MAX
        sums = self._column_sums(end)
        for index in range(end, self._last):
            apart |= bool(cells.gaps[index]) and gap_counts
            if rows.kinds[index] == RowKind.TOTAL or self._sums_all(index, sums):
                apart = True
                if rows.kinds[index] == RowKind.DATA:
                    rows.change(index, RowKind.TOTAL, SkipReason.ADDS_UP)
            elif rows.kinds[index] == RowKind.DATA and self._is_sparse(index):
                keyless = self._key is not None and not cells.filled[index, self._key]
                if apart or keyless or self._misfits(index) or self._is_remark(index):
                    rows.change(index, RowKind.FOOTER, SkipReason.AFTER_DATA)

    def _is_remark(self, index: int) -> bool:
        """Return whether a row is one text that says it is a note, or is far longer than others."""
        cells = self._cells
        if cells.count[index] != 1 or not cells.words[index].any():
            return False
        column = int(cells.words[index].argmax())
        text = str(cells.texts[index, column])
        longest = max((len(other) for other in cells.texts[self._typical, column]), default=0)
        is_long = len(text) >= max(REMARK_CHARACTERS_MIN, REMARK_LENGTH_RATIO * longest)
        return is_long or _REMARK.match(text) is not None

    def _column_sums(self, end: int) -> FloatArray:
        rows, cells = self._rows, self._cells
        data = [row for row in range(self._first, end) if rows.kinds[row] == RowKind.DATA]
        sums: FloatArray = np.nansum(cells.numbers[data], axis=0)
        return sums

    def _sums_all(self, index: int, sums: FloatArray) -> bool:
        """Return whether a sparse row adds up all data rows above, without saying so."""
        columns = np.flatnonzero(self._cells.known[index])
        wanted = self._cells.numbers[index, columns]
        if not len(columns) or not self._is_sparse(index):
            return False
        same = np.abs(sums[columns] - wanted) <= SUM_TOLERANCE * np.abs(wanted)
        return bool((same & (wanted != 0)).all())

    def _check_last_blocks(self) -> None:
        """Leave out the last rows that follow a blank row and do not fit the columns."""
        rows, cells = self._rows, self._cells
        if self._blocks() > BLOCKS_MAX:
            return
        for first, last in reversed(list(self._block_bounds())[1:]):
            data = [row for row in range(first, last) if rows.kinds[row] == RowKind.DATA]
            misfit = [self._misfits(row) >= MISFIT_SHARE * cells.count[row] for row in data]
            if data and not all(misfit):
                return
            for row in data:
                rows.change(row, RowKind.FOOTER, SkipReason.AFTER_DATA)

    def _block_bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the rows (first, last + 1) between two blank rows."""
        start = self._first
        for index in range(self._first + 1, self._last + 1):
            if index == self._last or self._cells.gaps[index]:
                yield start, index
                start = index

    def _blocks(self) -> int:
        """Count the blocks that hold data."""
        kinds = self._rows.kinds
        return sum(
            any(kinds[row] == RowKind.DATA for row in range(first, last))
            for first, last in self._block_bounds()
        )
