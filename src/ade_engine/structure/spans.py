"""Keep sets of rows as runs: a million data rows are one pair of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class RowSpans:
    """Rows of a sheet (1-based) as sorted runs, first and last row included."""

    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[int] | npt.NDArray[Any]) -> RowSpans:
        """Gather single rows, in any order, into runs."""
        numbers = np.unique(np.fromiter(rows, dtype=np.int64))
        if not len(numbers):
            return cls()
        breaks = np.flatnonzero(np.diff(numbers) > 1)
        firsts = numbers[np.concatenate(([0], breaks + 1))]
        lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
        return cls(tuple(zip(firsts.tolist(), lasts.tolist(), strict=True)))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.runs)

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and any(first <= row <= last for first, last in self.runs)

    @property
    def count(self) -> int:
        """Count the rows."""
        return sum(last - first + 1 for first, last in self.runs)

    @property
    def first(self) -> int:
        """Give the first row; there must be one."""
        return self.runs[0][0]

    @property
    def last(self) -> int:
        """Give the last row; there must be one."""
        return self.runs[-1][1]

    def rows(self) -> Iterator[int]:
        """Go through the rows one by one."""
        for first, last in self.runs:
            yield from range(first, last + 1)

    def mask(self, first_row: int, height: int) -> npt.NDArray[np.bool_]:
        """Say for each row of a block whether it is one of these."""
        chosen = np.zeros(height, dtype=np.bool_)
        for first, last in self.runs:
            if last >= first_row and first < first_row + height:
                chosen[max(first - first_row, 0) : last - first_row + 1] = True
        return chosen
