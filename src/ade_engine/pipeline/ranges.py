"""Gather the cells of a column that share an issue into ranges, while rows stream by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.coordinates import Range, a1

RANGES_MAX = 100


@dataclass
class RowRuns:
    """Rows as runs, the first hundred of them kept; the count is of all."""

    count: int = 0
    kept: list[tuple[int, int]] = field(default_factory=list)
    omitted: int = 0

    def add(self, rows: IntArray) -> None:
        """Add rows, further down than those before."""
        if not len(rows):
            return
        self.count += len(rows)
        breaks = np.flatnonzero(np.diff(rows) > 1)
        firsts = rows[np.concatenate(([0], breaks + 1))]
        lasts = rows[np.concatenate((breaks, [len(rows) - 1]))]
        start = 0
        if self.kept and not self.omitted and self.kept[-1][1] + 1 == firsts[0]:
            self.kept[-1] = (self.kept[-1][0], int(lasts[0]))
            start = 1
        room = max(RANGES_MAX - len(self.kept), 0)
        runs = zip(
            firsts[start : start + room].tolist(), lasts[start : start + room].tolist(), strict=True
        )
        self.kept += runs
        self.omitted += max(len(firsts) - start - room, 0)

    def ranges(self, column: int) -> list[str]:
        """Give the kept runs as ranges of a column."""
        return [
            a1(first, column) if first == last else str(Range(first, column, last, column))
            for first, last in self.kept
        ]
