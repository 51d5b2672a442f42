"""Choose the row that ends the first header of a grid, and decide whether there is a header at all.

The forest gives each row its share of "last row of a header". The first header ends at row i with
the share of i times the shares of the rows above *not* to end one. Whether that row is a header or
the sheet has none is a second question: a logistic regression answers it from the shares of all
rows and from how the row differs from the rows below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray

PRESENCE_MIN = 0.3  # below it the sheet has no header
FEW_ROWS = 6
ROW_FEATURES = (
    "below10_turns_to_values",
    "below10_stays_values",
    "below10_stays_words",
    "below_same_shape",
    "below_other_shape",
    "words",
    "numbers",
    "again_in_column",
    "fill_to_widest",
    "alone",
    "below3_covered",
    "length_mean",
    "below10_values",
    "row_above1_alike",
    "row_below1_alike",
    "above3_stays_values",
    "numeric_above",
)


@dataclass(frozen=True)
class FoundHeader:
    """The row that ends the first header, and the probability that it is one."""

    index: int
    score: float
    presence: float

    @property
    def is_likely(self) -> bool:
        return self.presence >= PRESENCE_MIN


@dataclass(frozen=True)
class Presence:
    """A logistic regression: the probability that the chosen row is a header."""

    mean: FloatArray
    scale: FloatArray
    coefficients: FloatArray
    intercept: float

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Presence:
        """Parse the regression from the JSON of the weights."""
        arrays = {name: np.array(data[name]) for name in ("mean", "scale", "coefficients")}
        return cls(intercept=float(data["intercept"]), **arrays)

    def probability(self, inputs: FloatArray) -> float:
        """Return the probability for one row of inputs."""
        odds = float(((inputs - self.mean) / self.scale) @ self.coefficients) + self.intercept
        return float(1 / (1 + np.exp(-np.clip(odds, -30, 30))))


def end_scores(ends: FloatArray) -> FloatArray:
    """Return the probability of each row to end the first header, from its share alone."""
    scores: FloatArray = ends * np.concatenate(([1.0], np.cumprod(1 - ends)[:-1]))
    return scores


def presence_inputs(
    shares: FloatArray, named: Mapping[str, FloatArray], index: int, labels: tuple[int, int, int]
) -> FloatArray:
    """Return the inputs of the regression for a row; `labels` are header end, header and data."""
    end, header, data = labels
    ends = shares[:, end]
    return np.array(
        [
            ends[index],
            end_scores(ends)[index],
            np.prod(1 - ends),
            ends.max(),
            np.log1p(index),
            np.log1p(shares[:index, data].sum()),
            shares[index, data],
            shares[index, header],
            float(len(ends) < FEW_ROWS),
            *(named[name][index] for name in ROW_FEATURES),
        ]
    )


def find_first_header(
    shares: FloatArray,
    named: Mapping[str, FloatArray],
    presence: Presence,
    labels: tuple[int, int, int],
    ruled: BoolArray | None = None,
) -> FoundHeader | None:
    """Return the most likely first header; only rows that detectors name if there are such."""
    ends = shares[:, labels[0]]
    if not len(ends):
        return None
    if ruled is not None and ruled.any():
        index = int(np.argmax(end_scores(np.where(ruled, ends, 0.0))))
        return FoundHeader(index, float(ends[index]), 1.0)
    scores = end_scores(ends)
    index = int(np.argmax(scores))
    inputs = presence_inputs(shares, named, index, labels)
    probability = presence.probability(inputs)
    if index + 1 < len(ends) and _names_the_first_column(named, index + 1):
        index += 1
    return FoundHeader(index, float(scores[index]), probability)


def _names_the_first_column(named: Mapping[str, FloatArray], index: int) -> bool:
    """Return whether a row is one cell that names the column which the header above it leaves out.

    If more rows of one cell follow, the row is a heading of the rows below it.
    """
    alone = named["alone"][index] == 1 and named["alone_again"][index] == 0
    adjacent = named["blank_above"][index] == 0 and named["first_empty"][index - 1] == 1
    fills = named["first_empty"][index] == 0 and named["fills_gaps_above"][index] == 1
    return bool(alone and adjacent and fills)
