"""Hold the cells of a grid's rows that are not blank, by what they look like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ade_engine.sheets.arrays import BoolArray, ByteArray, FloatArray, IntArray, ObjectArray
from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook


@dataclass(frozen=True)
class RowCells:
    """The looks, texts and numbers of the rows of a grid that are not blank."""

    places: IntArray  # of these rows in the grid
    rows: IntArray  # their numbers in the sheet
    looks: ByteArray
    texts: ObjectArray
    numbers: FloatArray

    @classmethod
    def of(cls, grid: Grid) -> RowCells:
        """Take the rows of a grid that are not blank."""
        places = np.flatnonzero(~grid.blank)
        return cls(
            places, grid.rows[places], grid.looks[places], grid.texts[places], grid.numbers[places]
        )

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def filled(self) -> BoolArray:
        filled: BoolArray = self.looks != CellLook.NOTHING
        return filled

    @cached_property
    def words(self) -> BoolArray:
        words: BoolArray = self.looks == CellLook.WORDS
        return words

    @cached_property
    def values(self) -> BoolArray:
        """Mark numbers, years and dates."""
        return np.isin(self.looks, (CellLook.NUMBER, CellLook.YEAR, CellLook.DATE))

    @cached_property
    def known(self) -> BoolArray:
        """Mark the cells whose number is known."""
        numeric = np.isin(self.looks, (CellLook.NUMBER, CellLook.YEAR))
        known: BoolArray = numeric & np.isfinite(self.numbers)
        return known

    @cached_property
    def count(self) -> IntArray:
        """Count the cells of each row."""
        count: IntArray = self.filled.sum(axis=1)
        return count

    @cached_property
    def gaps(self) -> BoolArray:
        """Mark the rows that follow a blank row."""
        gaps: BoolArray = np.diff(self.places, prepend=-1) > 1
        return gaps

    @cached_property
    def left_out_above(self) -> BoolArray:
        """Mark the rows above which rows of the sheet are not in the grid."""
        jumps: BoolArray = np.diff(self.rows, prepend=0) > np.diff(self.places, prepend=-1)
        return jumps
