"""Compute numeric features of each row: its content, and how it differs from the rows around it.

No feature depends on the subject of a sheet; the only words searched for (`total`, `note`,
`source`) are common to all sheets. Blank rows have no features; they only count as distance.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from ade_engine.tables.grid import Grid
from ade_engine.tables.header_features import header_features
from ade_engine.tables.looks import CellLook
from ade_engine.tables.row_cells import RowCells

DISTANCE_MAX = 40  # rows; larger distances count as this one
BELOW_ROWS = (3, 10)
ABOVE_ROWS = (3,)
SUM_ROWS_MAX = 64
SUM_CELLS_MIN = 2  # a single matching number may be chance
SUM_TOLERANCE = 1e-3  # rounded numbers do not add up exactly
NEIGHBOURS = (-2, -1, 1, 2, 3)

_TOTAL = re.compile(
    r"\b(?:(?:sub|grand)?[\s-]?totals?|sum|subtotal|average|mean|median|overall|all)\b", re.I
)
_NOTE = re.compile(
    r"(?:notes?|sources?|footnotes?|remarks?|see)\b|\(?[0-9a-z]{1,2}[).:]\s|[*†‡]|\[\w\]"
    r"|\d+\s*[A-Z][a-z]+ ",
    re.I,
)
_UNIT = re.compile(r"[(\[][^)\]]*[)\]]$|%|\bper\b|\bno\.|#|\bnumber\b|\brate\b", re.I)


class RowFeatures:
    """The features of a grid's rows that are not blank, as a matrix with named columns."""

    def __init__(self, grid: Grid) -> None:
        self.places = np.flatnonzero(~grid.blank)
        self._grid = grid
        self._looks = grid.looks[self.places]
        self._texts = grid.texts[self.places]
        self._numbers = grid.numbers[self.places]
        self._filled = self._looks != CellLook.NOTHING
        self._words = self._looks == CellLook.WORDS
        self._years = self._looks == CellLook.YEAR
        self._values = np.isin(self._looks, (CellLook.NUMBER, CellLook.DATE, CellLook.MARK))
        self._count = np.maximum(self._filled.sum(axis=1), 1)

    @cached_property
    def named(self) -> dict[str, FloatArray]:
        """Return every feature by its name."""
        own = self._own()
        found = dict(own)
        found |= self._place()
        found |= self._contrast()
        found |= self._repetition()
        found |= self._sums()
        found |= header_features(RowCells.of(self._grid))
        for distance in NEIGHBOURS:
            found |= self._neighbour(distance, own)
        return found

    @cached_property
    def matrix(self) -> FloatArray:
        """Return one row of numbers for each row that is not blank."""
        columns = list(self.named.values())
        return np.column_stack(columns) if len(self.places) else np.zeros((0, len(columns)))

    def _share(self, mask: BoolArray) -> FloatArray:
        shares: FloatArray = mask.sum(axis=1) / self._count
        return shares

    @cached_property
    def _lengths(self) -> FloatArray:
        return np.array([[len(text) for text in row] for row in self._texts], dtype=float).reshape(
            self._looks.shape
        )

    def _own(self) -> dict[str, FloatArray]:
        """Describe the row itself."""
        width = max(self._looks.shape[1], 1)
        word_count = np.maximum(self._words.sum(axis=1), 1)
        lengths = self._lengths * self._words
        first = np.argmax(self._filled, axis=1)
        last = width - 1 - np.argmax(self._filled[:, ::-1], axis=1)
        rows_of_features = [
            _text_features(row, words) for row, words in zip(self._texts, self._words, strict=True)
        ]
        of_texts = np.array(rows_of_features, dtype=float).reshape(
            len(rows_of_features), len(TEXT_FEATURES)
        )
        return {
            "filled": self._count.astype(float),
            "fill": self._count / width,
            "words": self._share(self._words),
            "numbers": self._share(self._looks == CellLook.NUMBER),
            "dates": self._share(self._looks == CellLook.DATE),
            "years": self._share(self._years),
            "marks": self._share(self._looks == CellLook.MARK),
            "first_column": first / width,
            "first_empty": (first > 0).astype(float),
            "last_column": (last + 1) / width,
            "gaps": 1 - self._count / np.maximum(last - first + 1, 1),
            "alone": (self._count == 1).astype(float),
            "length_mean": np.log1p(lengths.sum(axis=1) / word_count),
            "length_max": np.log1p(lengths.max(axis=1, initial=0)),
            "length_first": np.log1p(self._lengths[np.arange(len(first)), first])
            if len(first)
            else np.zeros(0),
            "progression": self._progression(),
        } | {name: of_texts[:, place] for place, name in enumerate(TEXT_FEATURES)}

    def _progression(self) -> FloatArray:
        """Return the share of the longest run of numbers that go up by one: a scale, not values."""
        steps = np.diff(self._numbers, axis=1) == 1 if self._looks.shape[1] > 1 else None
        longest = np.zeros(len(self.places))
        if steps is None:
            return longest
        running = np.zeros(len(self.places))
        for step in steps.T:
            running = np.where(step, running + 1, 0)
            longest = np.maximum(longest, running)
        shares: FloatArray = longest / self._count
        return shares

    def _place(self) -> dict[str, FloatArray]:
        """Describe the row's position: distance to both ends, blank rows around it, its block."""
        n = len(self.places)
        order = np.arange(n)
        above = np.diff(self.places, prepend=-1) - 1
        below = np.diff(self.places, append=self._grid.height) - 1
        begins = np.maximum.accumulate(np.where(above > 0, order, 0))
        ends = np.minimum.accumulate(np.where(below > 0, order, n)[::-1])[::-1]
        block = np.cumsum((above > 0) & (order > 0))
        numeric = self._share(self._values) >= 0.3
        before: IntArray = np.cumsum(numeric) - numeric
        after: IntArray = np.cumsum(numeric[::-1])[::-1] - numeric
        widest = np.maximum.accumulate(np.concatenate(([0], self._count)))[:-1]
        largest = self._count.max(initial=1)
        return {
            "from_top": _far(order),
            "from_end": _far(n - 1 - order),
            "blank_above": np.minimum(above, 3).astype(float),
            "blank_below": np.minimum(below, 3).astype(float),
            "in_block": _far(order - begins),
            "to_block_end": _far(np.minimum(ends, n - 1) - order),
            "block": np.minimum(block, 5).astype(float),
            "numeric_above": _far(before),
            "numeric_below": _far(after),
            "numeric_rest": after / np.maximum(n - 1 - order, 1),
            "fill_to_widest": self._count / largest,
            "fill_to_above": np.minimum(self._count / np.maximum(widest, 1), 5.0),
        }

    def _contrast(self) -> dict[str, FloatArray]:
        """Compare the row, column by column, with the rows below and above it."""
        found: dict[str, FloatArray] = {}
        for count in BELOW_ROWS:
            found |= self._against(f"below{count}", 1, count)
        for count in ABOVE_ROWS:
            found |= self._against(f"above{count}", -count, -1)
        return found

    def _against(self, name: str, start: int, stop: int) -> dict[str, FloatArray]:
        n = len(self.places)
        lower = np.clip(np.arange(n) + start, 0, n)
        upper = np.clip(np.arange(n) + stop + 1, 0, n)
        height = np.maximum(upper - lower, 1)[:, None]
        filled = _window(self._filled, lower, upper)
        values = _window(self._values, lower, upper)
        words = _window(self._words, lower, upper)
        years = _window(self._years, lower, upper)
        mostly_values = (values + years > 0.5 * filled) & (filled > 0)
        mostly_words = (words > 0.5 * filled) & (filled > 0)
        there = filled >= 0.3 * height
        lengths = np.log1p(self._lengths) * self._words
        mean_length = _window(lengths, lower, upper) / np.maximum(words, 1)
        both = self._words & (words > 0)
        difference = np.where(both, np.abs(lengths - mean_length), 0).sum(axis=1)
        there_count = np.maximum(there.sum(axis=1), 1)
        size = np.log1p(np.abs(np.nan_to_num(self._numbers)))
        known = ~np.isnan(self._numbers)
        known_there = _window(known, lower, upper)
        mean_size = _window(size * known, lower, upper) / np.maximum(known_there, 1)
        compared = known & (known_there > 0)
        size_difference = np.where(compared, np.abs(size - mean_size), 0).sum(axis=1)
        missing_there = self._filled & ~there
        return {
            f"{name}_turns_to_values": self._share(self._words & mostly_values),
            f"{name}_stays_values": self._share((self._values | self._years) & mostly_values),
            f"{name}_stays_words": self._share(self._words & mostly_words),
            f"{name}_turns_to_words": self._share((self._values | self._years) & mostly_words),
            f"{name}_years_over_values": self._share(self._years & (values > 0.5 * filled)),
            f"{name}_covered": (self._filled & there).sum(axis=1) / there_count,
            f"{name}_overhang": self._share(missing_there),
            f"{name}_fill": there.sum(axis=1) / max(self._looks.shape[1], 1),
            f"{name}_fill_ratio": np.minimum(
                self._count * height[:, 0] / np.maximum(filled.sum(axis=1), 1), 5.0
            ),
            f"{name}_values": values.sum(axis=1) / np.maximum(filled.sum(axis=1), 1),
            f"{name}_words": words.sum(axis=1) / np.maximum(filled.sum(axis=1), 1),
            f"{name}_size_difference": size_difference / np.maximum(compared.sum(axis=1), 1),
            f"{name}_length_difference": difference / np.maximum(both.sum(axis=1), 1),
        }

    def _repetition(self) -> dict[str, FloatArray]:
        """Describe how often the row's texts occur: in the row, in their columns, as a row."""
        distinct = np.array(
            [
                len(set(row[mask])) / max(mask.sum(), 1)
                for row, mask in zip(self._texts, self._words, strict=True)
            ]
        )
        again = np.zeros(self._looks.shape, dtype=bool)
        for place in range(self._looks.shape[1]):
            column = self._texts[:, place]
            _, inverse, counts = np.unique(
                column.astype(str), return_inverse=True, return_counts=True
            )
            again[:, place] = (counts[inverse] > 1) & self._words[:, place]
        whole: dict[tuple[str, ...], int] = {}
        for row in self._texts:
            key = tuple(row)
            whole[key] = whole.get(key, 0) + any(row)
        return {
            "distinct": distinct,
            "again_in_column": again.sum(axis=1) / np.maximum(self._words.sum(axis=1), 1),
            "again_as_row": np.array([float(whole[tuple(row)] > 1) for row in self._texts]),
        }

    def _sums(self) -> dict[str, FloatArray]:
        """Return the share of a row's numbers that are sums of the rows directly above or below."""
        known = np.isfinite(self._numbers) & (self._looks == CellLook.NUMBER) & (self._numbers != 0)
        values = np.where(known, self._numbers, 0.0)
        total = np.concatenate((np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)))
        count = np.maximum(known.sum(axis=1), SUM_CELLS_MIN)
        allowed = SUM_TOLERANCE * np.abs(values) + 1e-9
        n = len(values)
        found = {}
        self.sum_cells = np.zeros(n)
        for name, step in (("sum_of_above", -1), ("sum_of_below", 1)):
            best = np.zeros(n)
            for rows in range(2, min(SUM_ROWS_MAX, n - 1) + 1):
                inside = slice(rows, n) if step < 0 else slice(0, n - rows)
                sums = (
                    total[rows:n] - total[: n - rows]
                    if step < 0
                    else total[rows + 1 :] - total[1 : n - rows + 1]
                )
                same = known[inside] & (np.abs(values[inside] - sums) <= allowed[inside])
                best[inside] = np.maximum(best[inside], same.sum(axis=1) / count[inside])
            found[name] = best
            self.sum_cells = np.maximum(self.sum_cells, best * count)
        return found

    def _neighbour(self, distance: int, own: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """Add the main features of a nearby row, and how similar the two rows look."""
        n = len(self.places)
        name = f"{'above' if distance < 0 else 'below'}{abs(distance)}"
        other = np.arange(n) + distance
        inside = (other >= 0) & (other < n)
        other = np.clip(other, 0, max(n - 1, 0))
        found = {
            f"row_{name}_{feature}": np.where(inside, own[feature][other], -1.0)
            for feature in NEIGHBOUR_FEATURES
        }
        both = self._filled & self._filled[other]
        either = np.maximum((self._filled | self._filled[other]).sum(axis=1), 1)
        same = (both & (self._looks == self._looks[other])).sum(axis=1)
        found[f"row_{name}_alike"] = np.where(inside, same / either, -1.0)
        found[f"row_{name}_overlap"] = np.where(inside, both.sum(axis=1) / either, -1.0)
        return found


TEXT_FEATURES = (
    "total_word",
    "note_word",
    "colon",
    "sentence",
    "capitals",
    "capitalised",
    "units",
    "digits",
    "several_lines",
)
NEIGHBOUR_FEATURES = (
    "filled",
    "fill",
    "words",
    "numbers",
    "years",
    "first_empty",
    "alone",
    "length_mean",
    "length_max",
    "total_word",
)


def _text_features(texts: ObjectArray, words: BoolArray) -> tuple[float, ...]:
    """Compute the features of the row's texts, in the order of `TEXT_FEATURES`."""
    found = [text for text, is_words in zip(texts, words, strict=True) if is_words and text]
    if not found:
        return (0.0,) * len(TEXT_FEATURES)
    first, count = found[0], len(found)
    letters = [text for text in found if any(map(str.isalpha, text))]
    return (
        float(any(_TOTAL.search(text) for text in found[:2])),
        float(bool(_NOTE.match(first))),
        float(first.endswith(":")),
        float(first.endswith(".") and " " in first),
        sum(map(str.isupper, letters)) / count,
        sum(text[0].isupper() for text in found) / count,
        sum(bool(_UNIT.search(text)) for text in found) / count,
        sum(any(map(str.isdigit, text)) for text in found) / count,
        sum("\n" in text for text in found) / count,
    )


def _far(distance: IntArray) -> FloatArray:
    capped: FloatArray = np.log1p(np.minimum(distance, DISTANCE_MAX))
    return capped


def _window(
    cells: BoolArray | FloatArray,
    lower: IntArray,
    upper: IntArray,
) -> FloatArray:
    """Sum each column over a window of rows."""
    sums = np.concatenate((np.zeros((1, cells.shape[1])), np.cumsum(cells, axis=0, dtype=float)))
    window: FloatArray = sums[upper] - sums[lower]
    return window
