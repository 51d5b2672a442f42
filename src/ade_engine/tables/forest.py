"""Classify rows with a small random forest, and explain what each feature contributed.

The forest is data (`weights.json`, written by `bench/train_headers.py`), and numpy evaluates it.
Each node holds the shares of row kinds among the training rows that reached it. When a row moves
from a node to a child, the change of these shares is attributed to the feature that the node tests.
The contributions of all features and the base add up to exactly the forest's prediction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from ade_engine.sheets.arrays import FloatArray, IntArray
from ade_engine.tables.first_header import Presence

WEIGHTS_FILE = "weights.json"
SHARE_STEPS = 1000  # shares are stored as integer thousandths
LEAF = -1


@dataclass(frozen=True)
class Forest:
    """All trees in one array of nodes; a node's left child is the node after it."""

    features: tuple[str, ...]
    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    right: IntArray
    shares: FloatArray  # by node and kind of row

    def shares_of(self, matrix: FloatArray) -> FloatArray:
        """Return the predicted share of each kind for each row of features."""
        leaves = self._walk(matrix)[-1]
        means: FloatArray = self.shares[leaves].mean(axis=1)
        return means

    def contributions(self, row: FloatArray, kind: int) -> dict[str, float]:
        """Return what each feature of one row, and `base`, contributed to its share of a kind."""
        steps = self._walk(row[None, :])
        added: dict[str, float] = {"base": float(self.shares[steps[0], kind].mean())}
        for above, below in pairwise(steps):
            change = (self.shares[below, kind] - self.shares[above, kind])[0] / len(self.roots)
            tested = self.feature[above[0]]
            for feature, delta in zip(tested.tolist(), change.tolist(), strict=True):
                if feature != LEAF:
                    name = self.features[feature]
                    added[name] = added.get(name, 0.0) + delta
        return added

    def _walk(self, matrix: FloatArray) -> list[IntArray]:
        """Return the nodes that rows (first axis) reach in trees (second axis), level by level."""
        rows = np.arange(len(matrix))[:, None]
        # The trees were trained in single precision, so compare in single precision.
        values = matrix.astype(np.float32)
        nodes = np.broadcast_to(self.roots, (len(matrix), len(self.roots)))
        steps = [nodes]
        while True:
            tested = self.feature[nodes]
            inner = tested != LEAF
            if not inner.any():
                return steps
            smaller = values[rows, tested] <= self.threshold[nodes]
            nodes = np.where(inner, np.where(smaller, nodes + 1, self.right[nodes]), nodes)
            steps.append(nodes)


@dataclass(frozen=True)
class Weights:
    """The trained model: the forest, the transitions between kinds, and the calibration."""

    kinds: tuple[str, ...]
    forest: Forest
    start: FloatArray
    end: FloatArray
    following: FloatArray  # log share of a kind after a kind, in adjacent rows
    following_blank: FloatArray  # likewise with blank rows in between
    confidence: tuple[tuple[float, float], ...]  # raw score and share of correct headers, ascending
    presence: Presence


@cache
def default_weights() -> Weights:
    """Load the weights that ship with the engine, once."""
    return read_weights(json.loads(files(__package__).joinpath(WEIGHTS_FILE).read_text()))


def read_weights(data: Mapping[str, Any]) -> Weights:
    """Parse weights from their JSON."""
    trees = data["trees"]
    sizes = [len(tree["feature"]) for tree in trees]
    roots = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    forest = Forest(
        features=tuple(data["features"]),
        roots=roots,
        feature=np.concatenate([np.array(tree["feature"]) for tree in trees]),
        threshold=np.concatenate([np.array(tree["threshold"], dtype=float) for tree in trees]),
        right=np.concatenate(
            [np.array(tree["right"]) + root for tree, root in zip(trees, roots, strict=True)]
        ),
        shares=np.concatenate([_node_shares(tree, len(data["kinds"])) for tree in trees]),
    )
    moves = {name: np.array(table, dtype=float) for name, table in data["transitions"].items()}
    return Weights(
        kinds=tuple(data["kinds"]),
        forest=forest,
        start=moves["start"],
        end=moves["end"],
        following=moves["following"],
        following_blank=moves["following_blank"],
        confidence=tuple((float(raw), float(share)) for raw, share in data["confidence"]),
        presence=Presence.of_json(data["presence"]),
    )


def _node_shares(tree: Mapping[str, Any], kinds: int) -> FloatArray:
    """Compute the shares of each node from its leaves, weighted by their training rows."""
    size = len(tree["feature"])
    shares = np.zeros((size, kinds))
    weight = np.zeros(size)
    leaves = iter(zip(tree["leaf_shares"], tree["leaf_weights"], strict=True))
    inner = []
    for node, feature in enumerate(tree["feature"]):
        if feature == LEAF:
            found, weight[node] = next(leaves)
            if isinstance(found, int):  # all of one kind
                shares[node, found] = 1.0
            else:
                shares[node] = np.array(found) / SHARE_STEPS
        else:
            inner.append(node)
    for node in reversed(inner):  # children come after their parents
        left, right = node + 1, tree["right"][node]
        weight[node] = weight[left] + weight[right]
        shares[node] = (shares[left] * weight[left] + shares[right] * weight[right]) / weight[node]
    return shares
