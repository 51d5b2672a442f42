"""Decide which rows are totals: by arithmetic, or by a label that is a total word.

A row is a total if

- its label *is* a total word ("Total", "Grand total 2019", "Summe:"), it has no text where data
  rows have one, and its numbers are not smaller than those that they would add up;
- its label begins or ends with a total word ("Total North", "North Total"), it has no text where
  data rows have one, and its numbers add up, or the rest of the label is the name of a group above;
- it has no such label, at least three of its numbers add up together, and the model agrees.

A name that begins with "Total" is therefore data, as is a row called "Total" with an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray
from ade_engine.tables.looks import CellLook
from ade_engine.tables.row_cells import RowCells

NEAR_ROWS = 12  # rows around a candidate that show what data rows look like
NAME_SHARE = 0.6  # of the rows nearby that have a text in a column of names
LABELS_LOOKED_AT = 2  # a total word may be in the second text: "North", "Total"
LABEL_CHARACTERS_MAX = 60
VALUE_SHARE = 0.3  # least share of values among the cells of a total
SUM_ROWS_MAX = 2000
CANDIDATES_MAX = 1000  # later candidates are judged by their labels and cells alone
TOLERANCE = 1e-3  # rounded numbers do not add up exactly
UNLABELLED_CELLS_MIN = 3
UNLABELLED_SHARE = 0.8

_WORDS = (
    r"(?:(?:sub|grand|over\s?all|net|gross|running|zwischen|gesamt|end)[\s-]*)?"
    r"(?:totals?|totale?s?|totaal|sums?|summen?|summe|somme|suma|soma|insgesamt|gesamt|итого|всего"
    r"|合計|小計|総計|合计|总计|averages?|mean|median|durchschnitt|moyenne|promedio)"
)
_QUALIFIER = (
    r"(?:\W*(?:\(.*\)|\[.*\]|[\d/.,'–-]+|q[1-4]|amount|sum|general|général|net|gross|overall|eur|usd"
    r"|gbp|chf|[$€£¥%]|due|all|jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*"
    r"|nov\w*|dec\w*))"
)
_ANYWHERE = re.compile(_WORDS, re.I)
_IS_TOTAL = re.compile(rf"\W*{_WORDS}{_QUALIFIER}{{0,3}}\W*", re.I)
_BEGINS = re.compile(rf"\W*{_WORDS}\b[\s:–-]*(?:(?:of|for|für|de|von)\s+)?(?P<rest>.+)", re.I)
_ENDS = re.compile(rf"(?P<rest>.+?)[\s:–-]+{_WORDS}\W*", re.I)
_IS_MEAN = re.compile(r"\W*(?:averages?|mean|median|durchschnitt|moyenne|promedio)", re.I)


@dataclass(frozen=True)
class TotalLabel:
    """A text of a row that names a total: its column, and what it is the total of ("" if all)."""

    column: int
    rest: str
    is_mean: bool

    @property
    def is_whole(self) -> bool:
        """Return whether the label is nothing but a total word."""
        return not self.rest


def total_label(text: str, column: int = 0) -> TotalLabel | None:
    """Parse a text as the label of a total."""
    if len(text) > LABEL_CHARACTERS_MAX or _ANYWHERE.search(text) is None:
        return None
    is_mean = _IS_MEAN.match(text) is not None
    if _IS_TOTAL.fullmatch(text):
        return TotalLabel(column, "", is_mean)
    found = _BEGINS.fullmatch(text) or _ENDS.fullmatch(text)
    return TotalLabel(column, found["rest"].strip().casefold(), is_mean) if found else None


class TotalRows:
    """Which rows of a grid are totals, and why."""

    def __init__(self, cells: RowCells) -> None:
        self._cells = cells
        self._numbers = np.where(cells.known, cells.numbers, 0.0)
        self.adds_up: BoolArray = np.zeros(len(cells), dtype=np.bool_)
        self.says_total: BoolArray = np.zeros(len(cells), dtype=np.bool_)
        for number, (place, label) in enumerate(self._candidates()):
            self._judge(place, label, with_sums=number < CANDIDATES_MAX)

    @property
    def certain(self) -> BoolArray:
        """Mark the rows that are totals whatever the model says."""
        certain: BoolArray = self.adds_up | self.says_total
        return certain

    def possible(self, sum_cells: FloatArray, sum_share: FloatArray) -> BoolArray:
        """Mark the rows that may be totals if the model agrees, by the numbers that add up."""
        names = self._cells.words.sum(axis=1)
        usual = np.median(names) if len(names) else 0
        enough = (sum_cells >= UNLABELLED_CELLS_MIN) & (sum_share >= UNLABELLED_SHARE)
        possible: BoolArray = self.certain | (enough & ((names <= 1) | (names < usual)))
        return possible

    def _candidates(self) -> Iterator[tuple[int, TotalLabel]]:
        """Yield the rows with values whose label names a total."""
        cells = self._cells
        marks = cells.looks == CellLook.MARK
        share = (cells.values | marks).sum(axis=1) / np.maximum(cells.count, 1)
        for place in np.flatnonzero((share >= VALUE_SHARE) & cells.values.any(axis=1)).tolist():
            label = self._label(place)
            if label is not None:
                yield place, label

    def _judge(self, place: int, label: TotalLabel, *, with_sums: bool) -> None:
        names = self._name_columns(place, label)
        sums = self._sum_cells(place) if with_sums else 0
        if self._cells.words[place, names].any():
            self.adds_up[place] = label.is_whole and sums >= UNLABELLED_CELLS_MIN
        elif sums:
            self.adds_up[place] = True
        elif label.is_whole or self._is_group(place, label):
            self.says_total[place] = bool(len(names)) or self._is_large(place, label)

    def _label(self, place: int) -> TotalLabel | None:
        columns = np.flatnonzero(self._cells.words[place])[:LABELS_LOOKED_AT]
        if not len(columns) or self._cells.filled[place, : columns[0]].any():
            return None  # a row that begins with an identifier or a date is data
        texts = self._cells.texts
        found = [total_label(str(texts[place, column]), int(column)) for column in columns]
        if found[0] is None and len(found) > 1 and found[1] is not None and found[1].is_whole:
            return found[1]
        return found[0]

    def _near(self, place: int) -> IntArray:
        """Return the rows around a row that are not known to be totals."""
        rows = np.arange(max(place - NEAR_ROWS, 0), min(place + NEAR_ROWS + 1, len(self._cells)))
        near: IntArray = rows[(rows != place) & ~self.certain[rows]]
        return near

    def _name_columns(self, place: int, label: TotalLabel) -> IntArray:
        """Return the columns where data rows have a text, right of the label."""
        near = self._near(place)
        near = near[self._cells.values[near].any(axis=1)]
        if not len(near):
            return np.zeros(0, dtype=np.int64)
        named: BoolArray = self._cells.words[near].mean(axis=0) >= NAME_SHARE
        named[: label.column + 1] = False
        return np.flatnonzero(named)

    def _sum_cells(self, place: int) -> int:
        """Return how many numbers are the sums of the same rows above or below the row.

        0 unless most of them are. Sums of all rows, of all but earlier totals, and of earlier
        totals alone are tried.
        """
        columns = np.flatnonzero(self._cells.known[place] & (self._numbers[place] != 0))
        first, last = self._reach(place)
        wanted = self._numbers[place, columns]
        allowed = TOLERANCE * np.abs(wanted) + 1e-9
        best = 0
        for rows in (slice(place - 1, first - 1 if first else None, -1), slice(place + 1, last)):
            terms = self._numbers[rows][:, columns]
            totals = self.certain[rows][:, None]
            for part in (terms, np.where(totals, 0.0, terms), np.where(totals, terms, 0.0)):
                several = np.cumsum(part != 0, axis=0) >= 2
                same = (np.abs(np.cumsum(part, axis=0) - wanted) <= allowed) & several
                best = max(best, int(same.sum(axis=1).max(initial=0)))
        return best if 2 * best > len(columns) else 0

    def _reach(self, place: int) -> tuple[int, int]:
        """Return the rows (first, last + 1) around a row of which none is missing in the grid."""
        jumps = np.flatnonzero(self._cells.left_out_above)
        before, after = jumps[jumps <= place], jumps[jumps > place]
        first = max(place - SUM_ROWS_MAX, int(before[-1]) if len(before) else 0)
        last = int(after[0]) if len(after) else len(self._cells)
        return first, min(place + SUM_ROWS_MAX, last)

    def _is_group(self, place: int, label: TotalLabel) -> bool:
        """Return whether the rest of a label is the name of a group above: "Total North"."""
        above = self._cells.texts[max(place - SUM_ROWS_MAX, 0) : place, : label.column + 1]
        return any(str(text).casefold() == label.rest for text in above.ravel() if text)

    def _is_large(self, place: int, label: TotalLabel) -> bool:
        """Return whether most numbers are at least as large as those around them."""
        columns = np.flatnonzero(self._cells.known[place])
        if label.is_mean or not len(columns):
            return True
        around = self._numbers[self._near(place)][:, columns]
        if (around < 0).any():
            return True
        largest = around.max(axis=0, initial=0.0)
        larger = self._numbers[place, columns] >= largest * (1 - TOLERANCE)
        return bool(larger.mean() > 0.5)
