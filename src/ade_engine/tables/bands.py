"""Tell tables side by side from one table that has an empty column.

Tables of statistics often have empty columns, so a gap alone decides nothing. Two bands of columns
are two tables if the second repeats the header of the first, or if both have their own header,
begin with a column of names, and end on different rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ade_engine.tables.assembly import TableDraft
from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook

COLUMNS_MIN = 2  # a single column is never a table next to another
HEADER_CONFIDENCE_MIN = 0.5
SAME_HEADER_SHARE = 0.6
NAMES_SHARE = 0.8
ENDS_APART_ROWS = 2


@dataclass(frozen=True)
class Band:
    """Some columns of a grid, and the first table in them."""

    grid: Grid
    first: TableDraft

    @property
    def header_texts(self) -> set[str]:
        """Return the set of the header's texts."""
        found = self.grid.texts[self.first.header].ravel()
        return {text.casefold() for text in found if text}

    @property
    def begins_with_names(self) -> bool:
        """Return whether the first column names the rows."""
        names = self.grid.looks[self.first.body, 0]
        return bool(np.isin(names, (CellLook.WORDS, CellLook.DATE)).mean() >= NAMES_SHARE)

    @property
    def extent(self) -> tuple[int, int]:
        """Return the last row of the header and the last row of the data."""
        rows = self.grid.rows
        return int(rows[self.first.header[-1]]), int(rows[max(self.first.body)])


def side_by_side(grid: Grid, first_table: Callable[[Grid], TableDraft | None]) -> list[Grid]:
    """Split a grid into bands of columns that hold separate tables, or return it whole."""
    groups = _groups(grid)
    if len(groups) < 2:
        return [grid]
    joined = [groups[0]]
    for group in groups[1:]:
        left, right = _band(grid, joined[-1], first_table), _band(grid, group, first_table)
        if left is not None and right is not None and _independent(left, right):
            joined.append(group)
        else:
            joined[-1] = [*joined[-1], *group]
    if len(joined) < 2:
        return [grid]
    return [grid.band(0, grid.height - 1, group) for group in joined]


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


def _band(
    grid: Grid, group: list[int], first_table: Callable[[Grid], TableDraft | None]
) -> Band | None:
    if len(group) < COLUMNS_MIN:
        return None
    cut = grid.band(0, grid.height - 1, group)
    found = first_table(cut)
    if found is None or not found.header or not found.body:
        return None
    return Band(cut, found) if found.confidence >= HEADER_CONFIDENCE_MIN else None


def _independent(left: Band, right: Band) -> bool:
    common = len(left.header_texts & right.header_texts)
    if common >= COLUMNS_MIN and common >= SAME_HEADER_SHARE * len(right.header_texts):
        return True
    (left_top, left_end), (right_top, right_end) = left.extent, right.extent
    apart = left_top != right_top or abs(left_end - right_end) >= ENDS_APART_ROWS
    return apart and left.begins_with_names and right.begins_with_names
