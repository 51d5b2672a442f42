"""Keep of a sheet what deciding its structure needs: all of a small one, the odd rows of a big one.

A long stretch of rows like each other is data, whoever looks at it. So a grid holds the rows where
something may begin or end and leaves out the middle of such stretches and of blank bands.
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
    """Some rows of a sheet with what their cells look like; ``texts`` is "" where no text is."""

    rows: IntArray
    columns: tuple[int, ...]
    looks: ByteArray
    texts: ObjectArray
    numbers: FloatArray  # NaN where no number is seen

    @classmethod
    def of_columns(cls, rows: Sequence[int] | IntArray, columns: dict[int, CellArray]) -> Grid:
        """Look at the given rows of columns; columns that hold nothing are left out."""
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
        """Mark the cells that are not empty to the eye."""
        filled: BoolArray = self.looks != CellLook.NOTHING
        return filled

    @cached_property
    def blank(self) -> BoolArray:
        """Mark the rows where nothing stands."""
        blank: BoolArray = np.logical_not(self.filled.any(axis=1))
        return blank

    def band(self, first: int, last: int, columns: Sequence[int]) -> Grid:
        """Cut out rows (places in the grid, last included) and columns (places too)."""
        places = list(columns)
        return Grid(
            self.rows[first : last + 1],
            tuple(self.columns[place] for place in places),
            self.looks[first : last + 1][:, places],
            self.texts[first : last + 1][:, places],
            self.numbers[first : last + 1][:, places],
        )


def _look(column: CellArray) -> tuple[ByteArray, ObjectArray, FloatArray]:
    """Tell for each cell of a column its sign, its text and its number."""
    looks = _LOOK_BY_KIND[column.kinds]
    texts = np.full(len(column), "", dtype=object)
    numbers = np.where(column.kinds == CellKind.NUMBER, column.numbers, np.nan)
    looks[(column.kinds == CellKind.NUMBER) & looks_like_year(numbers)] = CellLook.YEAR
    written = np.flatnonzero(column.kinds == CellKind.TEXT)
    if len(written):
        # Plain Python: for a few hundred cells a query of polars costs more than the work.
        every = column.text.to_list()
        found = [every[place].strip() for place in written.tolist()]
        texts[written] = found
        looks[written] = [look_of_text(text) for text in found]
        numbers[written] = [number_of_text(text) for text in found]
        numbers[~np.isin(looks, (CellLook.NUMBER, CellLook.YEAR))] = np.nan
    return looks, texts, numbers
