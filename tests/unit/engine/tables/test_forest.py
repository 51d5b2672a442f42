"""The forest, evaluated with numpy, and the weights that ship."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.engine.tables.sheets import HEADER, MadeSheet, people

from ade_engine.tables.features import RowFeatures
from ade_engine.tables.forest import default_weights, read_weights
from ade_engine.tables.labels import HEADER_END, LABELS, header_score
from ade_engine.tables.sample import sample_sheet

STUMPS = {
    "features": ["fill", "words"],
    "kinds": ["a", "b"],
    "transitions": {
        "start": [0, 0],
        "end": [0, 0],
        "following": [[0, 0], [0, 0]],
        "following_blank": [[0, 0], [0, 0]],
    },
    "confidence": [[0, 0], [1, 1]],
    "presence": {"mean": [0], "scale": [1], "coefficients": [1], "intercept": 0},
    "trees": [
        {  # fill <= 0.5 ? b : (words <= 0.3 ? half and half : a)
            "feature": [0, -1, 1, -1, -1],
            "threshold": [0.5, 0, 0.3, 0, 0],
            "right": [2, 0, 4, 0, 0],
            "leaf_shares": [1, [500, 500], 0],
            "leaf_weights": [6, 2, 2],
        },
        {"feature": [-1], "threshold": [0], "right": [0], "leaf_shares": [0], "leaf_weights": [1]},
    ],
}


def test_rows_go_down_the_trees_by_hand() -> None:
    forest = read_weights(STUMPS).forest
    matrix = np.array([[0.5, 1.0], [0.6, 0.25], [0.6, 0.31]])
    assert forest.shares_of(matrix).tolist() == [[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]]


def test_contributions_add_up_by_hand() -> None:
    forest = read_weights(STUMPS).forest
    added = forest.contributions(np.array([0.6, 0.31]), 0)
    # The first tree: 3 of 10 rows were a at the top, 3 of 4 behind "fill", all behind "words".
    assert added == pytest.approx({"base": 0.65, "fill": 0.225, "words": 0.125})


def test_contributions_add_up_for_the_weights_that_ship() -> None:
    weights = default_weights()
    features = RowFeatures(sample_sheet(MadeSheet([["Accounts"], HEADER, *people(10)])).grid)
    shares = weights.forest.shares_of(features.matrix)
    assert shares.sum(axis=1) == pytest.approx(np.ones(len(shares)), abs=2e-3)
    for row, share in zip(features.matrix, shares[:, HEADER_END], strict=True):
        assert sum(weights.forest.contributions(row, HEADER_END).values()) == pytest.approx(share)


def test_the_weights_that_ship_are_in_step_with_the_code() -> None:
    weights = default_weights()
    assert weights.forest.features == tuple(
        RowFeatures(sample_sheet(MadeSheet([["a", 1]])).grid).named
    )
    assert weights.kinds == tuple(LABELS)
    assert weights.following.shape == (len(LABELS), len(LABELS))
    raw, right = np.array(weights.confidence).T
    assert (np.diff(raw) >= 0).all()
    assert (np.diff(right) >= 0).all()


def test_a_rival_near_by_makes_a_header_less_clear() -> None:
    shares = np.zeros((10, len(LABELS)))
    shares[2, HEADER_END] = 0.9
    alone = header_score(shares, 2)
    shares[3, HEADER_END] = 0.6
    assert header_score(shares, 2) < alone
