"""Keep of a sheet what deciding its structure needs: all of a small one, the odd rows of a big one.

A long stretch of rows like each other is data, whoever looks at it. So a grid holds the rows where
something may begin or end and leaves out the middle of such stretches and of blank bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ade_engine.sheets.cells import CellKind, Column
from ade_engine.tables.signs import (
    SIGN_OF_KIND,
    Sign,
    looks_like_year,
    number_of_text,
    sign_of_text,
)

Signs = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Texts = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]

_SIGN_BY_KIND = np.array([SIGN_OF_KIND[kind] for kind in CellKind], dtype=np.uint8)


@dataclass(frozen=True)
class Grid:
    """Some rows of a sheet with what their cells look like; ``texts`` is "" where no text is."""

    rows: Rows
    columns: tuple[int, ...]
    signs: Signs
    texts: Texts
    numbers: Numbers  # NaN where no number is seen

    @classmethod
    def of_columns(cls, rows: Sequence[int] | Rows, columns: dict[int, Column]) -> Grid:
        """Look at the given rows of columns; columns that hold nothing are left out."""
        looked = {number: _look(column) for number, column in sorted(columns.items())}
        used = {number: seen for number, seen in looked.items() if seen[0].any()}
        height = len(rows)
        signs = np.zeros((height, len(used)), dtype=np.uint8)
        texts = np.full((height, len(used)), "", dtype=object)
        numbers = np.full((height, len(used)), np.nan)
        for place, seen in enumerate(used.values()):
            signs[:, place], texts[:, place], numbers[:, place] = seen
        return cls(np.asarray(rows, dtype=np.int64), tuple(used), signs, texts, numbers)

    @classmethod
    def of_values(cls, rows: Iterable[Sequence[object]]) -> Grid:
        """Look at rows of Python values that begin in A1."""
        held = [list(row) for row in rows]
        width = max(map(len, held), default=0)
        padded = [row + [None] * (width - len(row)) for row in held]
        columns = {
            number: Column.of(cells) for number, cells in enumerate(zip(*padded, strict=True), 1)
        }
        return cls.of_columns(range(1, len(held) + 1), columns)

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.columns)

    @cached_property
    def filled(self) -> Mask:
        """Mark the cells that are not empty to the eye."""
        filled: Mask = self.signs != Sign.NOTHING
        return filled

    @cached_property
    def blank(self) -> Mask:
        """Mark the rows where nothing stands."""
        blank: Mask = np.logical_not(self.filled.any(axis=1))
        return blank

    def band(self, first: int, last: int, columns: Sequence[int]) -> Grid:
        """Cut out rows (places in the grid, last included) and columns (places too)."""
        places = list(columns)
        return Grid(
            self.rows[first : last + 1],
            tuple(self.columns[place] for place in places),
            self.signs[first : last + 1][:, places],
            self.texts[first : last + 1][:, places],
            self.numbers[first : last + 1][:, places],
        )


def _look(column: Column) -> tuple[Signs, Texts, Numbers]:
    """Tell for each cell of a column its sign, its text and its number."""
    signs = _SIGN_BY_KIND[column.kinds]
    texts = np.full(len(column), "", dtype=object)
    numbers = np.where(column.kinds == CellKind.NUMBER, column.numbers, np.nan)
    signs[(column.kinds == CellKind.NUMBER) & looks_like_year(numbers)] = Sign.YEAR
    written = np.flatnonzero(column.kinds == CellKind.TEXT)
    if len(written):
        # Plain Python: for a few hundred cells a query of polars costs more than the work.
        every = column.text.to_list()
        found = [every[place].strip() for place in written.tolist()]
        texts[written] = found
        signs[written] = [sign_of_text(text) for text in found]
        numbers[written] = [number_of_text(text) for text in found]
        numbers[~np.isin(signs, (Sign.NUMBER, Sign.YEAR))] = np.nan
    return signs, texts, numbers
