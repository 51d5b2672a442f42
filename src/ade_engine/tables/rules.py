"""Take row detectors of a config package: `detect_<rule>(row)` of `row_types/<type>.py`.

A detector's score is added to what the default model thinks of the row: 1 decides for the row type,
-1 against it, 0.1 is a hint, 0 or None says nothing. It may also return a mapping of row type to
score. Detectors of `header` are asked about the rows where something may begin; those of other
types about every row that is not blank, which costs a call for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ade_engine.sheets.cells import CellKind


class Row(Protocol):
    """What a row detector sees: one row, and through it the rows around."""

    @property
    def number(self) -> int:
        """Give the row's number in the sheet, 1-based."""

    @property
    def values(self) -> tuple[object, ...]:
        """Give the cells' values from column A to the sheet's last used column."""

    @property
    def kinds(self) -> tuple[CellKind, ...]:
        """Give the cells' kinds, in the order of the values."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Give the texts of the cells that hold text, stripped."""

    @property
    def filled(self) -> int:
        """Count the cells that are not empty."""

    @property
    def fill(self) -> float:
        """Give the share of the sheet's columns that are not empty here."""

    @property
    def text_share(self) -> float:
        """Give the share of text among the cells that are not empty."""

    @property
    def number_share(self) -> float:
        """Give the share of numbers and dates, written as such or as text, likewise."""

    def above(self, distance: int = 1) -> Row | None:
        """Give the row so many rows further up, or None at the top."""

    def below(self, distance: int = 1) -> Row | None:
        """Give the row so many rows further down, or None at the end."""


Scorer = Callable[[Row], float | Mapping[str, float] | None]


@dataclass(frozen=True)
class RowScorer:
    """One detector: the row type it speaks for, its name in explanations, and the function.

    An exception that the function raises is the caller's to wrap: it reaches whoever asked for
    the tables unchanged.
    """

    row_type: str
    name: str
    score: Scorer
