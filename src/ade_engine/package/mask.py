"""A three-valued mask of a column's cells: true, false, or null for an empty cell."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from ade_engine.package.author_errors import Misuse
from ade_engine.sheets.arrays import BoolArray


class Mask:
    """A mask of cells; combine masks with `~`, `&` and `|`.

    An empty cell is null, so that neither `matches(...)` nor its negation marks it.
    """

    __slots__ = ("series",)

    def __init__(self, marks: pl.Series | BoolArray | Iterable[bool | None]) -> None:
        series = marks if isinstance(marks, pl.Series) else pl.Series(marks, dtype=pl.Boolean)
        self.series = series if series.dtype == pl.Boolean else series.cast(pl.Boolean)

    def __len__(self) -> int:
        return len(self.series)

    def __invert__(self) -> Mask:
        return Mask(~self.series)

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.series & self._fitting(other))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.series | self._fitting(other))

    def __bool__(self) -> bool:
        raise Misuse("a mask has one value for each cell: use ~, & and | instead of not, and, or")

    @property
    def count(self) -> int:
        """Count the marked cells."""
        return int(self.series.sum() or 0)

    @property
    def share(self) -> float:
        """Return the share of marked cells among those that are not null; 0 if all are null."""
        answered = len(self.series) - self.series.null_count()
        return self.count / answered if answered else 0.0

    def any(self) -> bool:
        """Return whether any cell is marked."""
        return self.count > 0

    def all(self) -> bool:
        """Return whether every cell that is not null is marked."""
        return bool(self.series.all(ignore_nulls=True))

    def marked(self) -> BoolArray:
        """Return the mask as a boolean array; null becomes false."""
        if self.series.null_count():
            return self.series.fill_null(False).to_numpy()
        return self.series.to_numpy()

    def _fitting(self, other: object) -> pl.Series:
        if not isinstance(other, Mask):
            raise Misuse("& and | combine two masks; put parentheses around each comparison")
        if len(other) != len(self):
            raise Misuse("the masks have different lengths")
        return other.series
