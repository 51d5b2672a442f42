"""Hold the rows of a sheet that are needed to find its tables, as arrays.

`sample` chooses the rows: all rows of a small sheet, and the unusual rows of a big one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ade_engine.sheets.arrays import BoolArray, ByteArray, FloatArray, IntArray, ObjectArray
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.tables.looks import (
    LOOK_OF_KIND,
    CellLook,
    look_of_text,
    looks_like_year,
    number_of_text,
)

_LOOK_BY_KIND = np.array([LOOK_OF_KIND[kind] for kind in CellKind], dtype=np.uint8)


@dataclass(frozen=True)
class Grid:
    """Some rows of a sheet: how their cells look, their texts ("" if none) and their numbers."""

    rows: IntArray
    columns: tuple[int, ...]
    looks: ByteArray
    texts: ObjectArray
    numbers: FloatArray  # NaN where a cell does not show a number

    @classmethod
    def of_columns(cls, rows: Sequence[int] | IntArray, columns: dict[int, CellArray]) -> Grid:
        """Make a grid from the given rows of columns, leaving out empty columns."""
        looked = {number: _look(column) for number, column in sorted(columns.items())}
        used = {number: seen for number, seen in looked.items() if seen[0].any()}
        height = len(rows)
        looks = np.zeros((height, len(used)), dtype=np.uint8)
        texts = np.full((height, len(used)), "", dtype=object)
        numbers = np.full((height, len(used)), np.nan)
        for place, seen in enumerate(used.values()):
            looks[:, place], texts[:, place], numbers[:, place] = seen
        return cls(np.asarray(rows, dtype=np.int64), tuple(used), looks, texts, numbers)

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.columns)

    @cached_property
    def filled(self) -> BoolArray:
        """Mark the cells that do not look empty."""
        filled: BoolArray = self.looks != CellLook.NOTHING
        return filled

    @cached_property
    def blank(self) -> BoolArray:
        """Mark the rows that are entirely empty."""
        blank: BoolArray = np.logical_not(self.filled.any(axis=1))
        return blank

    def band(self, first: int, last: int, columns: Sequence[int]) -> Grid:
        """Return some rows and columns, given as indexes into the grid (`last` is included)."""
        places = list(columns)
        return Grid(
            self.rows[first : last + 1],
            tuple(self.columns[place] for place in places),
            self.looks[first : last + 1][:, places],
            self.texts[first : last + 1][:, places],
            self.numbers[first : last + 1][:, places],
        )


def _look(column: CellArray) -> tuple[ByteArray, ObjectArray, FloatArray]:
    """Return the look, the text and the number of each cell of a column."""
    looks = _LOOK_BY_KIND[column.kinds]
    texts = np.full(len(column), "", dtype=object)
    numbers = np.where(column.kinds == CellKind.NUMBER, column.numbers, np.nan)
    looks[(column.kinds == CellKind.NUMBER) & looks_like_year(numbers)] = CellLook.YEAR
    written = np.flatnonzero(column.kinds == CellKind.TEXT)
    if len(written):
        # Plain Python is faster than a polars query for a few hundred cells.
        every = column.text.to_list()
        found = [every[place].strip() for place in written.tolist()]
        texts[written] = found
        looks[written] = [look_of_text(text) for text in found]
        numbers[written] = [number_of_text(text) for text in found]
        numbers[~np.isin(looks, (CellLook.NUMBER, CellLook.YEAR))] = np.nan
    return looks, texts, numbers
