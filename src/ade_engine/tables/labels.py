"""Label each row of a grid with its kind, from the forest's shares and the order of the rows.

The last row of the first header is chosen first (`first_header`). With that row fixed, the most
likely sequence of kinds for all rows is computed (Viterbi), so that the kind of a row also fits the
kinds of its neighbours. Totals and rows after the data are then checked (`totals`, `row_checks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from ade_engine.tables.features import RowFeatures
from ade_engine.tables.first_header import FoundHeader, find_first_header
from ade_engine.tables.forest import Weights
from ade_engine.tables.forms import is_key_value
from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook
from ade_engine.tables.regions import Contribution, RowKind
from ade_engine.tables.row_cells import RowCells
from ade_engine.tables.row_checks import RowChecks
from ade_engine.tables.totals import TotalRows


class Label(StrEnum):
    """The kinds that the forest predicts; the last row of a header is its own kind."""

    HEADER_END = "header_end"
    HEADER = "header"
    DATA = "data"
    PREAMBLE = "preamble"
    NOTE = "note"
    TOTAL = "total"
    GROUP = "group"


LABELS = tuple(Label)
HEADER_END, HEADER, DATA = (
    LABELS.index(one) for one in (Label.HEADER_END, Label.HEADER, Label.DATA)
)
HEADER_LABELS = (HEADER_END, HEADER)
PRESENCE_LABELS = (HEADER_END, HEADER, DATA)
TOTAL = LABELS.index(Label.TOTAL)
BODY_LABELS = tuple(LABELS.index(one) for one in (Label.DATA, Label.TOTAL, Label.GROUP))

ORDER_WEIGHT = 0.6  # of the transitions between kinds, relative to the shares of each row
ORDER_FLOOR = -6.0  # a transition that never occurred in training is unlikely, not impossible
TOTAL_BONUS = 5.0  # for a row that says it is a total and looks like one
EDGE_WEIGHT = 0.5  # of the kinds at both ends of a sheet, which vary between sources
SURE_SHARE = 0.5
SURE_BONUS = 4.0  # for a row that looks like a header next to a blank row
REPETITION_BONUS = 12.0
REPEATED_TEXTS_MIN = 2
REPEATED_SHARE = 0.8  # of a header's texts that must be the same in a repetition
BEFORE_HEADER_MALUS = 4.0  # rows above the first header are rarely data
SHARE_FLOOR = 1e-3
RULED_SHARE_FLOOR = 0.01
RULED_HEADER_SCORE = 0.5
FORM_PRESENCE_MIN = 0.9  # below it a sheet of names and values has no header
FORM_ROWS_MIN = 6
HEADER_SCORE_MIN = 0.05  # below it no header is more likely
TITLE_SCORE_MIN = 0.3  # of a header that is one cell above rows of several, as a title is
TITLE_ROWS = 5  # below the title that are looked at
NAMES_OF_EMPTY_COLUMNS_MIN = 3  # of them, more than half above empty columns
NEVER = -1e9
RULE_WEIGHT = 24.0  # a detector's score of 1 outweighs everything else, 0.1 is a hint
REASONS_MAX = 8

LABELS_OF_TYPE: dict[str, tuple[int, ...]] = {
    RowKind.HEADER: HEADER_LABELS,
    RowKind.DATA: (DATA,),
    RowKind.TOTAL: (LABELS.index(Label.TOTAL),),
    RowKind.GROUP: (LABELS.index(Label.GROUP),),
    RowKind.NOTE: (LABELS.index(Label.NOTE),),
    RowKind.FOOTER: (LABELS.index(Label.NOTE),),
    RowKind.PREAMBLE: (LABELS.index(Label.PREAMBLE),),
}

RowScores = Mapping[int, Mapping[str, Mapping[str, float]]]
"""The scores of row detectors: {row number: {row type: {rule: score}}}."""


@dataclass(frozen=True)
class LabelledRows:
    """The rows of a grid that are not blank, each with its kind."""

    grid: Grid
    features: RowFeatures
    shares: FloatArray
    kinds: tuple[str, ...]  # a `Label`, a `RowKind`, or a row type of a config package
    reasons: tuple[str, ...]  # why a row is left out; "" for header and data
    scores: RowScores
    weights: Weights
    header: FoundHeader | None = None  # the first one, also if it is too unlikely to be used

    @property
    def places(self) -> IntArray:
        """Return the indexes of these rows in the grid."""
        return self.features.places

    def why(self, index: int) -> tuple[Contribution, ...]:
        """Return what contributed to this row being the last of a header."""
        added = self.weights.forest.contributions(self.features.matrix[index], HEADER_END)
        base = added.pop("base")
        ordered = sorted(added.items(), key=lambda item: (-abs(item[1]), item[0]))
        shown, rest = ordered[:REASONS_MAX], ordered[REASONS_MAX:]
        contributions = [
            ("base", base),
            *shown,
            ("other_features", sum(delta for _, delta in rest)),
        ]
        row = int(self.grid.rows[self.places[index]])
        rules = [
            Contribution(name, round(delta, 4))
            for name, delta in self.scores.get(row, {}).get(RowKind.HEADER, {}).items()
        ]
        return (
            *(Contribution(f"row.header.{name}", round(delta, 4)) for name, delta in contributions),
            *rules,
        )

    def confidence(self, index: int) -> float:
        """Return the share of headers with such a score that were correct in training."""
        raw, right = zip(*self.weights.confidence, strict=True)
        is_first = self.header is not None and index == self.header.index
        presence = self.header.presence if self.header is not None and is_first else 1.0
        score = header_score(self.shares, index, presence)
        return round(float(np.interp(score, raw, right)), 3)


def header_score(shares: FloatArray, index: int, presence: float = 1.0) -> float:
    """Return a raw score: the row's share, reduced by the shares of the rows around it."""
    ends = shares[:, HEADER_END]
    around = ends[max(index - 3, 0) : index + 4].sum() - ends[index]
    return float(presence * ends[index] / (1 + around))


def label_rows(grid: Grid, weights: Weights, scores: RowScores | None = None) -> LabelledRows:
    """Label each row of a grid that is not blank."""
    features = RowFeatures(grid)
    scores = scores or {}
    shares = weights.forest.shares_of(features.matrix)
    rows = grid.rows[features.places].tolist()
    names, odds = _detector_odds(rows, scores)
    shares = np.pad(shares, ((0, 0), (0, len(names) - len(LABELS))))
    looks = np.log(shares + SHARE_FLOOR) + odds
    if scores:
        shares = _shares(np.log(shares + RULED_SHARE_FLOOR) + odds)
    if not rows:
        return LabelledRows(grid, features, shares, (), (), scores, weights)
    cells = RowCells.of(grid)
    totals = TotalRows(cells)
    _only_totals(looks, totals, features, odds)
    gaps = cells.gaps
    after_gap = gaps | np.roll(gaps, 1)
    looks[after_gap & (shares[:, HEADER_END] >= SURE_SHARE), HEADER_END] += SURE_BONUS
    ruled = odds[:, HEADER_END] >= RULE_WEIGHT * RULED_HEADER_SCORE
    candidate = find_first_header(shares, features.named, weights.presence, PRESENCE_LABELS, ruled)
    header = _used(candidate, shares, grid, features.places)
    if header is not None:
        looks[_repetitions(grid.texts[features.places], header), HEADER_END] += REPETITION_BONUS
    found = _most_likely(looks, gaps, weights, header)
    checks = RowChecks([names[kind] for kind in found], cells, _decided(odds))
    checks.check()
    kinds, reasons = tuple(checks.kinds), checks.reasons(totals.says_total)
    return LabelledRows(grid, features, shares, kinds, reasons, scores, weights, candidate)


def _used(
    header: FoundHeader | None, shares: FloatArray, grid: Grid, places: IntArray
) -> int | None:
    """Return the row of a header that is likely enough; in a form it must be certain."""
    if header is not None and _names_empty_columns(grid, places, header.index):
        return header.index
    if header is None or not header.is_likely:
        return None
    score = header_score(shares, header.index, header.presence)
    cells = grid.filled[places].sum(axis=1)
    if score < (TITLE_SCORE_MIN if _is_like_title(cells, header.index) else HEADER_SCORE_MIN):
        return None
    may_be_form = header.presence < FORM_PRESENCE_MIN and len(places) >= FORM_ROWS_MIN
    return None if may_be_form and is_key_value(grid, places.tolist()) else header.index


def _is_like_title(cells: IntArray, index: int) -> bool:
    """Return whether a row and all above it are one cell each, and most rows below it are more."""
    below = cells[index + 1 : index + 1 + TITLE_ROWS]
    return bool((cells[: index + 1] == 1).all() and len(below) and np.median(below) > 1)


def _names_empty_columns(grid: Grid, places: IntArray, index: int) -> bool:
    """Return whether a row of words has names for most columns where no row below has a value.

    So it is in a sheet that was made to be filled in.
    """
    row, below = places[index], places[index + 1 :]
    named = grid.filled[row]
    used = grid.filled[below].any(axis=0)
    only_words = bool((grid.looks[row][named] == CellLook.WORDS).all())
    names, empty = int(named.sum()), int((named & ~used).sum())
    enough = names >= NAMES_OF_EMPTY_COLUMNS_MIN and 2 * empty > names
    return only_words and enough and bool(used.any()) and not (used & ~named).any()


def _only_totals(
    looks: FloatArray, totals: TotalRows, features: RowFeatures, odds: FloatArray
) -> None:
    """Prefer certain totals, and make data of rows that look like totals and cannot be any."""
    looks[totals.certain, TOTAL] += TOTAL_BONUS
    share = np.maximum(features.named["sum_of_above"], features.named["sum_of_below"])
    others = ~totals.possible(features.sum_cells, share) & (odds[:, TOTAL] <= 0)
    looks[others, DATA] = np.logaddexp(looks[others, DATA], looks[others, TOTAL])
    looks[others, TOTAL] = NEVER


def _decided(odds: FloatArray) -> BoolArray:
    """Mark the rows whose kind a row detector decided."""
    decided: BoolArray = odds.max(axis=1) >= RULE_WEIGHT * RULED_HEADER_SCORE
    return decided


def _repetitions(texts: ObjectArray, header: int) -> BoolArray:
    """Mark the rows that repeat the last row of the first header, as on each printed page."""
    named = np.flatnonzero(texts[header] != "")
    if len(named) < REPEATED_TEXTS_MIN:
        return np.zeros(len(texts), dtype=np.bool_)
    equal = texts[:, named] == texts[header][named]
    same = equal.mean(axis=1) >= REPEATED_SHARE
    if len(named) > REPEATED_TEXTS_MIN:  # the first text may name the group that follows
        same |= equal[:, 1:].all(axis=1)
    same[: header + 1] = False
    repeated: BoolArray = same
    return repeated


def _detector_odds(rows: list[int], scores: RowScores) -> tuple[tuple[str, ...], FloatArray]:
    """Return all kinds, those of a config package last, and what detectors add to their odds."""
    types = {kind for answers in scores.values() for kind in answers}
    names = (*LABELS, *sorted(types - set(LABELS_OF_TYPE)))
    odds = np.zeros((len(rows), len(names)))
    for index, row in enumerate(rows):
        for kind, rules in scores.get(row, {}).items():
            labels = LABELS_OF_TYPE.get(kind) or (names.index(kind),)
            odds[index, list(labels)] += RULE_WEIGHT * sum(rules.values())
    return names, odds


def _shares(log_odds: FloatArray) -> FloatArray:
    ratio = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    shares: FloatArray = ratio / ratio.sum(axis=1, keepdims=True)
    return shares


def _most_likely(
    looks: FloatArray, gaps: BoolArray, weights: Weights, header: int | None
) -> list[int]:
    """Find the most likely sequence of kinds in which the first header ends at `header`."""
    if header is None:
        looks[:, list(HEADER_LABELS)] = NEVER
    else:
        looks[: header + 1, HEADER_END] = NEVER
        looks[:header, list(BODY_LABELS)] -= BEFORE_HEADER_MALUS
        looks[header] = NEVER
        looks[header, HEADER_END] = 0
    count = looks.shape[1]
    beside = _padded(weights.following, count)
    apart = _padded(weights.following_blank, count)
    best = looks[0] + EDGE_WEIGHT * _padded(weights.start, count)
    came_from = []
    for index in range(1, len(looks)):
        ways = best[:, None] + (apart if gaps[index] else beside)
        back = ways.argmax(axis=0)
        came_from.append(back)
        best = ways[back, np.arange(count)] + looks[index]
    kind = int((best + EDGE_WEIGHT * _padded(weights.end, count)).argmax())
    found = [kind]
    for back in reversed(came_from):
        kind = int(back[kind])
        found.append(kind)
    return found[::-1]


def _padded(table: FloatArray, count: int) -> FloatArray:
    """Weigh transitions between kinds; row types of a config package get the mean transition."""
    wider = np.full((count,) * table.ndim, float(table.mean()))
    wider[tuple(slice(size) for size in table.shape)] = table
    weighed: FloatArray = ORDER_WEIGHT * np.maximum(wider, ORDER_FLOOR)
    return weighed
