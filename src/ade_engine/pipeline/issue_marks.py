"""Find the cells of the output that have issues: which row of the source went to which row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ade_engine.package.issues import Severity
from ade_engine.pipeline.issue_log import IssueLine
from ade_engine.sheets.arrays import ByteArray, IntArray

MARK_OF = {Severity.INFO: 1, Severity.WARNING: 2, Severity.ERROR: 3}


@dataclass(frozen=True, slots=True)
class IssuePlace:
    """Consecutive cells of a field with the same issue.

    `index` is the position of the first one among the rows of the output, None if the issue is
    about the table or about a row that was left out; `source_row` is None if it is about the table.
    """

    line: IssueLine
    count: int
    index: int | None
    source_row: int | None


@dataclass(frozen=True)
class IssueCells:
    """The cells of a field that have one issue: positions in the output and rows of the source.

    Without positions, the rows were left out of the output; without rows, it is about the table.
    """

    line: IssueLine
    indexes: IntArray | None
    rows: IntArray | None

    @property
    def count(self) -> int:
        """Count the cells."""
        return 1 if self.rows is None else len(self.rows)

    def places(self) -> Iterator[IssuePlace]:
        """Yield runs of consecutive cells."""
        if self.rows is None:
            yield IssuePlace(self.line, 1, None, None)
            return
        apart = np.diff(self.rows) != 1
        if self.indexes is not None:
            apart |= np.diff(self.indexes) != 1
        starts = np.concatenate(([0], np.flatnonzero(apart) + 1))
        counts = np.diff(np.concatenate((starts, [len(self.rows)])))
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
            index = None if self.indexes is None else int(self.indexes[start])
            yield IssuePlace(self.line, count, index, int(self.rows[start]))


@dataclass
class IssueMarks:
    """Collect the issues of one table, and map its rows to the rows of the output."""

    columns: Mapping[str, int]
    """The positions of the fields among the columns of the output."""
    _waiting: list[tuple[IssueLine, IntArray | None]] = field(default_factory=list)
    _sources: list[IntArray] = field(default_factory=list)

    def mark(self, line: IssueLine, rows: IntArray | None) -> None:
        """Mark rows of the source; None marks the table."""
        self._waiting.append((line, rows))

    def take(
        self, rows: IntArray, first_index: int, width: int
    ) -> tuple[list[ByteArray | None], list[IssueCells]]:
        """Return the marks of the cells of these rows by column, and the cells of each issue."""
        self._remember(rows, first_index)
        marks: list[ByteArray | None] = [None] * width
        found: list[IssueCells] = []
        later: list[tuple[IssueLine, IntArray | None]] = []
        for line, marked in self._waiting:
            if marked is None or not _all_in(rows, marked):
                later.append((line, marked))
                continue
            positions = np.searchsorted(rows, marked)
            column = self.columns.get(line.field)
            if column is not None:
                held = marks[column]
                held = np.zeros(len(rows), np.uint8) if held is None else held
                held[positions] = np.maximum(held[positions], MARK_OF[line.severity])
                marks[column] = held
            found.append(IssueCells(line, positions + first_index, marked))
        self._waiting = later
        return marks, found

    def late(self) -> Iterator[IssueCells]:
        """Yield the issues that were found after their rows were written."""
        for line, rows in self._waiting:
            if rows is None:
                yield IssueCells(line, None, None)
                continue
            indexes = self._indexes_of(rows)
            written = indexes >= 0
            if written.any():
                yield IssueCells(line, indexes[written], rows[written])
            if not written.all():
                yield IssueCells(line, None, rows[~written])
        self._waiting = []

    def _remember(self, rows: IntArray, first_index: int) -> None:
        """Keep which rows were written where, as runs of consecutive rows: first, last, index."""
        breaks = np.flatnonzero(np.diff(rows) != 1)
        starts = np.concatenate(([0], breaks + 1))
        ends = np.concatenate((breaks, [len(rows) - 1]))
        self._sources.append(np.stack((rows[starts], rows[ends], starts + first_index)))

    def _indexes_of(self, rows: IntArray) -> IntArray:
        """Return the positions of rows in the output, -1 for a row that was not written."""
        if not self._sources:
            return np.full(len(rows), -1, np.int64)
        firsts, lasts, indexes = np.concatenate(self._sources, axis=1)
        run = np.maximum(np.searchsorted(firsts, rows, side="right") - 1, 0)
        inside = (rows >= firsts[run]) & (rows <= lasts[run])
        return np.where(inside, indexes[run] + rows - firsts[run], -1)


def _all_in(rows: IntArray, marked: IntArray) -> bool:
    return bool(len(marked) and marked[0] >= rows[0] and marked[-1] <= rows[-1])
