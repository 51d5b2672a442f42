"""Represent sets of rows as runs: a million consecutive rows are one pair of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ade_engine.sheets.arrays import BoolArray, IntArray, ObjectArray


class RowSpans:
    """A set of row numbers as sorted runs (first row, last row), both included."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, runs: Iterable[tuple[int, int]] = ()) -> None:
        held = sorted(runs)
        self._firsts: IntArray = np.array([first for first, _ in held], dtype=np.int64)
        self._lasts: IntArray = np.array([last for _, last in held], dtype=np.int64)

    @classmethod
    def of(cls, rows: Iterable[int] | ObjectArray) -> RowSpans:
        """Make runs from single rows in any order."""
        numbers = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows), dtype=np.int64)
        spans = cls()
        if len(numbers):
            lowest = int(numbers.min())
            # Marking rows in an array is many times faster than sorting a million numbers.
            marked = np.zeros(int(numbers.max()) - lowest + 3, dtype=np.int8)
            marked[numbers - lowest + 1] = 1
            steps = np.diff(marked)
            spans._firsts = np.flatnonzero(steps == 1) + lowest
            spans._lasts = np.flatnonzero(steps == -1) + lowest - 1
        return spans

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """Return the first and last row of each run."""
        return tuple(zip(self._firsts.tolist(), self._lasts.tolist(), strict=True))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.runs)

    def __bool__(self) -> bool:
        return len(self._firsts) > 0

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, int):
            return False
        place = int(np.searchsorted(self._firsts, row, side="right")) - 1
        return place >= 0 and row <= int(self._lasts[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSpans) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def __repr__(self) -> str:
        return f"RowSpans({list(self.runs)})"

    @property
    def count(self) -> int:
        """Count the rows."""
        return int((self._lasts - self._firsts + 1).sum())

    @property
    def first(self) -> int:
        """Return the first row; the set must not be empty."""
        return int(self._firsts[0])

    @property
    def last(self) -> int:
        """Return the last row; the set must not be empty."""
        return int(self._lasts[-1])

    def gaps(self) -> RowSpans:
        """Return the rows between the first and the last that are not in the set."""
        between = RowSpans()
        between._firsts = self._lasts[:-1] + 1
        between._lasts = self._firsts[1:] - 1
        return between

    def rows(self) -> Iterator[int]:
        """Iterate over single rows."""
        for first, last in self.runs:
            yield from range(first, last + 1)

    def mask(self, first_row: int, height: int) -> BoolArray:
        """Mark the rows of a block that are in the set."""
        numbers = np.arange(first_row, first_row + height)
        place = np.searchsorted(self._firsts, numbers, side="right") - 1
        if not self:
            return np.zeros(height, dtype=np.bool_)
        inside: BoolArray = (place >= 0) & (numbers <= self._lasts[place])
        return inside
