"""Mark cells of a column: yes, no, or nothing to say where a cell is empty."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from ade_engine.package.author_errors import Misuse
from ade_engine.sheets.arrays import BoolArray


class Mask:
    """Mark cells; combine with `~`, `&`, `|`.

    An empty cell is neither marked nor unmarked, so that neither `matches(...)` nor its opposite
    counts it.
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
        raise Misuse("a mask is many answers: write ~, & and | instead of not, and, or")

    @property
    def count(self) -> int:
        """Count the marked cells."""
        return int(self.series.sum() or 0)

    @property
    def share(self) -> float:
        """Return the share of marked cells among those with an answer; 0 where there is none."""
        answered = len(self.series) - self.series.null_count()
        return self.count / answered if answered else 0.0

    def any(self) -> bool:
        """Return whether some cell is marked."""
        return self.count > 0

    def all(self) -> bool:
        """Return whether every cell with an answer is marked."""
        return bool(self.series.all(ignore_nulls=True))

    def marked(self) -> BoolArray:
        """Return the marks as an array; no answer is no mark."""
        if self.series.null_count():
            return self.series.fill_null(False).to_numpy()
        return self.series.to_numpy()

    def _fitting(self, other: object) -> pl.Series:
        if not isinstance(other, Mask):
            raise Misuse("& and | combine two masks; put parentheses around each comparison")
        if len(other) != len(self):
            raise Misuse("these masks are of chunks of different lengths")
        return other.series
