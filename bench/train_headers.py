"""Train the forest that finds headers, and write it: `scripts/bench train_headers`.

Uses `corpus/lines` alone. The same corpus, versions and seed give the same file. Beside each sheet
the forest sees copies that leave its labels true (nothing above the header, no header at all, no
blank rows, fewer columns and rows, two tables one under the other), so that it relies less on what
a set's files have in common.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ade_engine.tables.features import RowFeatures
from ade_engine.tables.first_header import end_scores, find_first_header, presence_inputs
from ade_engine.tables.forest import LEAF, SHARE_STEPS, WEIGHTS_FILE, read_weights
from ade_engine.tables.labels import DATA, HEADER_END, LABELS, PRESENCE_LABELS, header_score
from bench.labelled_sheets import SETS, LabelledSheet, corpus_folder, labelled_sheets, row_targets
from bench.sheet_copies import copies

SEED = 7
TREES = 50
PRESENCE_TREES = 20
ROWS_PER_LEAF_MIN = 8
DEPTH_MAX = 12
FEATURES_TRIED = 0.25
NEAR_ROWS = 6  # data rows so near to others are all taken, of the rest a few
FAR_ROWS_TAKEN = 15
COPY_WEIGHT = 0.3
CONFIDENCE_BINS = 8
WEIGHTS = Path(__file__).parents[1] / "src" / "ade_engine" / "tables" / WEIGHTS_FILE

Numbers = npt.NDArray[np.float64]
Targets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Example:
    """One sheet, or a copy of one, as the forest sees it."""

    matrix: Numbers
    targets: Targets
    gaps: npt.NDArray[np.bool_]
    taken: npt.NDArray[np.bool_]
    weight: float


@dataclass(frozen=True)
class Sample:
    """A labelled sheet with its examples, the first of which is the sheet itself."""

    sheet: LabelledSheet
    examples: tuple[Example, ...]
    names: tuple[str, ...]
    below: Numbers  # the features of the rows below the first header, up to the next one


def samples(sheets: Iterable[LabelledSheet]) -> list[Sample]:
    """Make the examples of all sheets."""
    held = list(sheets)
    return [
        _sample(sheet, held, np.random.default_rng([SEED, number]))
        for number, sheet in enumerate(held)
    ]


def _sample(
    sheet: LabelledSheet, others: Sequence[LabelledSheet], chance: np.random.Generator
) -> Sample:
    features = RowFeatures(sheet.grid)
    examples = [_example(features, sheet.targets(), 1.0, chance)]
    for copy, labels in copies(sheet, others, chance):
        if copy.width and not copy.blank.all():
            copied = RowFeatures(copy)
            targets = row_targets(labels, (copied.places + 1).tolist())
            examples.append(_example(copied, targets, COPY_WEIGHT, chance))
    below = sheet.below_header()
    matrix = RowFeatures(below).matrix if below is not None else np.zeros((0, 0))
    return Sample(sheet, tuple(examples), tuple(features.named), matrix)


def _example(
    features: RowFeatures, targets: Targets, weight: float, chance: np.random.Generator
) -> Example:
    odd = (targets != DATA).astype(float)
    near = np.convolve(odd, np.ones(2 * NEAR_ROWS + 1))[NEAR_ROWS : NEAR_ROWS + len(odd)] > 0
    few = chance.random(len(odd)) < FAR_ROWS_TAKEN / max(int((~near).sum()), 1)
    gaps = np.diff(features.places, prepend=-1) > 1
    return Example(features.matrix, targets, gaps, near | few, weight)


def fit(chosen: Sequence[Sample]) -> dict[str, Any]:
    """Fit a forest, the order of kinds and the presence of headers, as the engine's JSON."""
    forest = _forest(chosen, TREES)
    return {
        "format": 2,
        "features": list(chosen[0].names),
        "kinds": [label.value for label in LABELS],
        "transitions": _transitions([sample.examples[0] for sample in chosen]),
        "confidence": [[0.0, 0.0], [1.0, 1.0]],
        "presence": _presence(chosen),
        "trees": [_tree(one.tree_) for one in forest.estimators_],
    }


def _forest(chosen: Sequence[Sample], trees: int) -> RandomForestClassifier:
    examples = [example for sample in chosen for example in sample.examples]
    rows = np.concatenate([one.matrix[one.taken] for one in examples]).astype(np.float32)
    targets = np.concatenate([one.targets[one.taken] for one in examples])
    weights = np.concatenate(
        [
            np.full(int(one.taken.sum()), one.weight / np.sqrt(max(int(one.taken.sum()), 1)))
            for one in examples
        ]
    )
    forest = RandomForestClassifier(
        trees,
        min_samples_leaf=ROWS_PER_LEAF_MIN,
        max_depth=DEPTH_MAX,
        max_features=FEATURES_TRIED,
        random_state=SEED,
        n_jobs=2,
    )
    forest.fit(rows, targets, sample_weight=weights)
    assert forest.classes_.tolist() == list(range(len(LABELS)))
    return forest


def _presence(chosen: Sequence[Sample]) -> dict[str, Any]:
    """Fit the regression that says whether there is a header, on sets that its forest never saw."""
    inputs, answers = [], []
    for name in sorted({sample.sheet.set for sample in chosen}):
        others = [sample for sample in chosen if sample.sheet.set != name]
        forest = _forest(others or chosen, PRESENCE_TREES)
        for sample in (one for one in chosen if one.sheet.set == name and one.sheet.header):
            for matrix, answer in ((sample.examples[0].matrix, True), (sample.below, False)):
                if len(matrix):
                    shares = forest.predict_proba(matrix.astype(np.float32))
                    named = dict(zip(sample.names, matrix.T, strict=True))
                    index = int(np.argmax(end_scores(shares[:, HEADER_END])))
                    inputs.append(presence_inputs(shares, named, index, PRESENCE_LABELS))
                    answers.append(answer)
    scaler = StandardScaler().fit(inputs)
    model = LogisticRegression(C=0.3, max_iter=1000).fit(scaler.transform(inputs), answers)
    return {
        "mean": np.round(scaler.mean_, 6).tolist(),
        "scale": np.round(scaler.scale_, 6).tolist(),
        "coefficients": np.round(model.coef_[0], 5).tolist(),
        "intercept": round(float(model.intercept_[0]), 5),
    }


def _tree(tree: Any) -> dict[str, Any]:
    """Write a tree as lists; its nodes come parents first, a left child right after its parent."""
    inner = tree.children_left != LEAF
    shares = tree.value[~inner][:, 0, :]
    shares = np.rint(SHARE_STEPS * shares / shares.sum(axis=1, keepdims=True)).astype(int)
    return {
        "feature": np.where(inner, tree.feature, LEAF).tolist(),
        "threshold": [float(f"{one:.4g}") for one in np.where(inner, tree.threshold, 0)],
        "right": np.where(inner, tree.children_right, 0).tolist(),
        "leaf_shares": [
            int(one.argmax()) if one.max() == SHARE_STEPS else one.tolist() for one in shares
        ],
        "leaf_weights": tree.n_node_samples[~inner].tolist(),
    }


def _transitions(examples: Iterable[Example]) -> dict[str, Any]:
    count = len(LABELS)
    start, end = np.full(count, 0.3), np.full(count, 0.3)
    beside, apart = np.full((count, count), 0.3), np.full((count, count), 0.3)
    for one in examples:
        if len(one.targets):
            start[one.targets[0]] += 1
            end[one.targets[-1]] += 1
            for before, after, gap in zip(one.targets, one.targets[1:], one.gaps[1:], strict=False):
                (apart if gap else beside)[before, after] += 1
    tables = {"start": start, "end": end, "following": beside, "following_blank": apart}
    return {
        name: np.round(np.log(table / table.sum(axis=-1, keepdims=True)), 3).tolist()
        for name, table in tables.items()
    }


def confidence_points(unseen: Sequence[tuple[float, bool]]) -> list[list[float]]:
    """Turn scores of headers in sheets of unseen sets into the share of those that were right."""
    ordered = sorted(unseen)
    bins = np.array_split(np.array([[score, right] for score, right in ordered]), CONFIDENCE_BINS)
    points = [[0.0, 0.0]]
    for one in bins:
        score, right = (float(number) for number in one.mean(axis=0))
        points.append([round(score, 4), round(max(right, points[-1][1]), 4)])
    return [*points, [1.0, max(points[-1][1], 0.99)]]


def unseen_scores(made: Sequence[Sample], console: Console) -> list[tuple[float, bool]]:
    """Evaluate each set with a forest trained on the other two: certainty and correctness."""
    found = []
    for name in SETS:
        weights = read_weights(fit([one for one in made if one.sheet.set != name]))
        for one in (one for one in made if one.sheet.set == name and one.sheet.header):
            matrix = one.examples[0].matrix
            shares = weights.forest.shares_of(matrix)
            named = dict(zip(one.names, matrix.T, strict=True))
            header = find_first_header(shares, named, weights.presence, PRESENCE_LABELS)
            if header is not None and header.is_likely:
                place = np.flatnonzero(~one.sheet.grid.blank)[header.index]
                row = int(one.sheet.grid.rows[place])
                score = header_score(shares, header.index, header.presence)
                found.append((score, row == one.sheet.header[-1]))
        console.print(f"  evaluated {name} with the other sets")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    output = parser.parse_args().output
    console = Console()
    made = samples(labelled_sheets(corpus_folder()))
    weights = fit(made)
    weights["confidence"] = confidence_points(unseen_scores(made, console))
    text = json.dumps(weights, separators=(",", ":"))
    output.write_text(text + "\n")
    nodes = sum(len(tree["feature"]) for tree in weights["trees"])
    console.print(
        f"{output.name}: {len(made)} sheets, {len(weights['features'])} features, "
        f"{TREES} trees, {nodes} nodes, {len(text) / 1024:.0f} KiB"
    )


if __name__ == "__main__":
    main()
