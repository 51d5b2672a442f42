"""Split a sheet into parts that hold separate tables: side by side, and below those.

Tables of statistics often have empty columns, so a gap alone decides nothing. Two bands of columns
are two tables if both have their own header and

- the second repeats the header of the first and has its own key, or
- each has its own title directly above its header, or
- they begin or end on different rows, and the right one begins with a key: names, dates or
  identifiers, or
- they begin and end on the same rows, and both begin with a key, that of the right one without
  repetition. This is doubtful, and a person should check it.

A wide table below would hide the gap between two tables above it. Rows between blank rows are
therefore also tried on their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ade_engine.tables.assembly import TableDraft
from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook
from ade_engine.tables.stacks import blocks_of, stacked

COLUMNS_MIN = 2  # a single column is never a table next to another
HEADER_CONFIDENCE_MIN = 0.4
SAME_HEADER_SHARE = 0.6
NAMES_SHARE = 0.8
DISTINCT_SHARE = 0.9
ENDS_APART_ROWS = 2
DATA_ROWS_MIN = 2
SPLITS_TRIED_MAX = 60  # of one sheet; further rows are not tried on their own

_IDENTIFIER = re.compile(
    r".*\b(?:id|no|nr|num|number|nummer|code|key|ref|reference|sku|account|#)\W*", re.I
)

FirstTable = Callable[[Grid], TableDraft | None]


@dataclass(frozen=True)
class Part:
    """A part of a sheet that is searched for tables on its own."""

    grid: Grid
    is_doubtful: bool = False  # it may be one table with another part


@dataclass(frozen=True)
class _Band:
    """Some columns of a grid, and the first table in them."""

    grid: Grid
    first: TableDraft

    @property
    def header_texts(self) -> set[str]:
        """Return the set of the header's texts."""
        found = self.grid.texts[self.first.header].ravel()
        return {text.casefold() for text in found if text}

    @property
    def first_text(self) -> str:
        """Return the header of the first column."""
        return str(self.grid.texts[self.first.header[-1], 0]).casefold()

    @property
    def has_title(self) -> bool:
        """Return whether a row of one cell is directly above the header, in the first columns."""
        above = self.first.header[0] - 1
        return above >= 0 and self.grid.filled[above].sum() == 1

    @property
    def has_key(self) -> bool:
        """Return whether the first column names or numbers the rows."""
        return self._first_is(CellLook.WORDS, CellLook.DATE) or self._has_identifiers

    @property
    def has_distinct_key(self) -> bool:
        """Return whether the first column names or numbers the rows without repetition."""
        if self._has_identifiers:
            return True
        names = self.grid.texts[self.first.body, 0]
        distinct = len(set(names)) >= DISTINCT_SHARE * len(names)
        return self._first_is(CellLook.WORDS) and distinct

    @property
    def _has_identifiers(self) -> bool:
        """Return whether the first column holds different whole numbers that go up or are named."""
        numbers = self.grid.numbers[self.first.body, 0]
        numbers = numbers[np.isfinite(numbers)]
        whole = len(numbers) >= NAMES_SHARE * len(self.first.body) and not (numbers % 1).any()
        if not whole or len(np.unique(numbers)) < DISTINCT_SHARE * len(numbers):
            return False
        named = _IDENTIFIER.fullmatch(str(self.grid.texts[self.first.header[-1], 0]))
        return named is not None or bool((np.diff(numbers) == 1).mean() >= NAMES_SHARE)

    def _first_is(self, *looks: CellLook) -> bool:
        found = self.grid.looks[self.first.body, 0]
        return bool(np.isin(found, looks).mean() >= NAMES_SHARE)

    @property
    def extent(self) -> tuple[int, int]:
        """Return the last row of the header and the last row of the data."""
        rows = self.grid.rows
        return int(rows[self.first.header[-1]]), int(rows[max(self.first.body)])


class SheetParts:
    """Split the grid of a sheet into parts."""

    def __init__(self, first_table: FirstTable) -> None:
        self._first_table = first_table
        self._tries_left = SPLITS_TRIED_MAX

    def parts(self, grid: Grid) -> Iterator[Part]:
        """Yield the parts of a grid in which tables are to be found one under another."""
        bands = self.beside(grid)
        if len(bands) > 1:
            for band in bands:
                for part in self.parts(band.grid):
                    yield Part(part.grid, part.is_doubtful or band.is_doubtful)
            return
        runs = list(self._runs(grid))
        if len(runs) == 1:
            for first, last in stacked(grid, self._first_table):
                yield Part(grid.band(first, last, range(grid.width)))
            return
        for first, last in runs:
            yield from self.parts(grid.band(first, last, range(grid.width)))

    def beside(self, grid: Grid) -> list[Part]:
        """Split a grid into bands of columns that hold separate tables, or return it whole."""
        groups = _groups(grid)
        if len(groups) < 2:
            return [Part(grid)]
        joined = [groups[0]]
        doubtful = [False]
        for group in groups[1:]:
            left, right = self._band(grid, joined[-1]), self._band(grid, group)
            certainty = _independence(left, right) if left and right else None
            if certainty is None:
                joined[-1] = [*joined[-1], *group]
            else:
                joined.append(group)
                doubtful[-1] |= not certainty
                doubtful.append(not certainty)
        if len(joined) < 2:
            return [Part(grid)]
        return [
            Part(grid.band(0, grid.height - 1, group), doubt)
            for group, doubt in zip(joined, doubtful, strict=True)
        ]

    def _runs(self, grid: Grid) -> Iterator[tuple[int, int]]:
        """Yield runs of rows: those that hold tables side by side, and those between them."""
        blocks = blocks_of(grid)
        pending = 0  # the first row that is in no run yet
        index = 0
        while index < len(blocks):
            end = self._last_beside(grid, blocks, index)
            if end is None:
                index += 1
                continue
            if blocks[index][0] > pending:
                yield pending, blocks[index][0] - 1
            yield blocks[index][0], blocks[end][1]
            pending, index = blocks[end][1] + 1, end + 1
        if pending < grid.height:
            yield pending, grid.height - 1

    def _last_beside(self, grid: Grid, blocks: list[tuple[int, int]], first: int) -> int | None:
        """Return the last block of rows that, from the first one on, hold tables side by side."""
        found = None
        for last in range(first, len(blocks)):
            if first == 0 and last == len(blocks) - 1:
                break  # the whole grid was tried before
            rows = grid.band(blocks[first][0], blocks[last][1], range(grid.width))
            if len(_groups(rows)) < 2 or self._tries_left <= 0:
                break
            self._tries_left -= 1
            if len(self.beside(rows)) > 1:
                found = last
            elif found is not None:
                break
        return found

    def _band(self, grid: Grid, group: list[int]) -> _Band | None:
        if len(group) < COLUMNS_MIN:
            return None
        cut = grid.band(0, grid.height - 1, group)
        found = self._first_table(cut)
        if found is None or not found.header or len(found.body) < DATA_ROWS_MIN:
            return None
        return _Band(cut, found) if found.confidence >= HEADER_CONFIDENCE_MIN else None


def _groups(grid: Grid) -> list[list[int]]:
    """Group adjacent columns; rows with a single cell, such as titles, are ignored."""
    several = grid.filled.sum(axis=1) >= COLUMNS_MIN
    used = np.flatnonzero(grid.filled[several].any(axis=0)).tolist()
    groups: list[list[int]] = []
    for place in used:
        if groups and grid.columns[place] - grid.columns[groups[-1][-1]] == 1:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _independence(left: _Band, right: _Band) -> bool | None:
    """Return whether two bands are certainly (or doubtfully) two tables; None if they are one."""
    common = len(left.header_texts & right.header_texts)
    repeated = common >= COLUMNS_MIN and common >= SAME_HEADER_SHARE * len(right.header_texts)
    if repeated and (right.has_key or left.first_text == right.first_text != ""):
        return True
    (left_top, left_end), (right_top, right_end) = left.extent, right.extent
    apart = left_top != right_top or abs(left_end - right_end) >= ENDS_APART_ROWS
    if apart:
        return True if left.has_key and right.has_key else None
    if left.has_title and right.has_title:
        return True
    return False if left.has_key and right.has_distinct_key else None
