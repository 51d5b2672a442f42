"""Measure how well headers are found in sheets of sets that the forest never saw.

`scripts/bench headers` trains on two sets of `corpus/lines` and tests on the third, for each of the
three, through the same `find_tables` that a run uses; then in five folds over all files. `--json`
prints the same as JSON. `--shipped` tests the weights that ship: the forest has seen these files,
so that this shows only that the weights are in step with the code.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from ade_engine.sheets.workbook import open_workbook
from ade_engine.tables.finder import REVIEW_CONFIDENCE, find_tables
from ade_engine.tables.forest import Weights, default_weights, read_weights
from ade_engine.tables.labels import HEADER_LABELS, LABELS, Label, label_rows
from bench.labelled_sheets import SETS, LabelledSheet, corpus_folder, labelled_sheets
from bench.train_headers import Sample, fit, samples

FOLDS = 5
FIFTHS = 5
BELOW_A_HEADER = "rows below a header"
IN_BLOCK_GOAL, EXACT_GOAL, HEADERLESS_GOAL = 0.97, 0.92, 0.9


@dataclass(frozen=True)
class Outcome:
    """What was found in one file, against what its labels say."""

    name: str
    row: int | None
    confidence: float
    in_block: bool
    exact: bool
    in_strict_block: bool
    strictly_exact: bool
    in_any_header: bool

    @property
    def set(self) -> str:
        return self.name.split("/")[0]


@dataclass(frozen=True)
class Headerless:
    """Whether no header was found in rows without one, and the confidence in the one found."""

    name: str
    whole_file: bool  # or the rows below the header of a file that has one
    recognised: bool
    confidence: float


def evaluate(sheet: LabelledSheet, weights: Weights) -> Outcome:
    """Find the first table of a file as a run would, and compare its header's last row."""
    with open_workbook(sheet.path) as book:
        tables = find_tables(book.sheets[0].scan(), weights=weights).tables
    first = next(iter(tables), None)
    row = first.header_row if first else None
    return Outcome(
        name=sheet.name,
        row=row,
        confidence=first.confidence if first and row else 0.0,
        in_block=row in sheet.header,
        exact=row == sheet.header[-1],
        in_strict_block=row in sheet.strict_header,
        strictly_exact=row == sheet.strict_header[-1],
        in_any_header=row is not None and sheet.labels[row - 1] == "header",
    )


def count_kinds(sheet: LabelledSheet, weights: Weights, counts: np.ndarray) -> None:
    """Count each row's kind as labelled (first axis) and as found (second axis)."""
    labelled = label_rows(sheet.grid, weights)
    footer = LABELS.index(Label.NOTE)
    found = [LABELS.index(Label(kind)) if kind in LABELS else footer for kind in labelled.kinds]
    for right, seen in zip(sheet.targets().tolist(), found, strict=True):
        counts[right, seen] += 1


def evaluate_headerless(sheet: LabelledSheet, weights: Weights) -> Headerless | None:
    """Look for a header where there is none: in a file without one, or below the first header."""
    grid = sheet.below_header()
    if grid is None:
        return None
    labelled = label_rows(grid, weights)
    ends = [place for place, kind in enumerate(labelled.kinds) if kind == Label.HEADER_END]
    confidence = labelled.confidence(ends[0]) if ends else 0.0
    return Headerless(sheet.name, not sheet.header, not ends, confidence)


def leave_one_set_out(made: Sequence[Sample]) -> Iterator[tuple[list[Sample], list[Sample]]]:
    for name in SETS:
        yield (
            [one for one in made if one.sheet.set != name],
            [one for one in made if one.sheet.set == name],
        )


def folds(made: Sequence[Sample]) -> Iterator[tuple[list[Sample], list[Sample]]]:
    """Deal the files into folds, the same way every time."""
    order = np.random.default_rng(FOLDS).permutation(len(made))
    for fold in range(FOLDS):
        tested = set(order[fold::FOLDS].tolist())
        yield (
            [one for place, one in enumerate(made) if place not in tested],
            [one for place, one in enumerate(made) if place in tested],
        )


def cross_validate(
    splits: Iterator[tuple[list[Sample], list[Sample]]], log: Callable[[str], None]
) -> tuple[list[Outcome], list[Headerless], np.ndarray]:
    """Train on one part, test on the other, for every split."""
    outcomes: list[Outcome] = []
    headerless: list[Headerless] = []
    counts = np.zeros((len(LABELS), len(LABELS)), dtype=int)
    for trained, tested in splits:
        weights = read_weights(fit(trained))
        log(f"trained on {len(trained)} sheets, testing {len(tested)}")
        outcomes += [evaluate(one.sheet, weights) for one in tested if one.sheet.header]
        for one in tested:
            count_kinds(one.sheet, weights, counts)
            without = evaluate_headerless(one.sheet, weights)
            headerless += [without] if without else []
    return outcomes, headerless, counts


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    def share(name: str) -> float:
        return round(float(np.mean([getattr(one, name) for one in outcomes])), 3)

    names = ("in_block", "exact", "in_strict_block", "strictly_exact", "in_any_header")
    return {"files": len(outcomes), **{name: share(name) for name in names}}


def errors_by_fifth(outcomes: Sequence[Outcome]) -> list[dict[str, float]]:
    """Share out the files by confidence, lowest first, and the errors with them."""
    ordered = sorted(outcomes, key=lambda one: one.confidence)
    wrong = sum(not one.exact for one in outcomes) or 1
    outside = sum(not one.in_block for one in outcomes) or 1
    return [
        {
            "confidence_from": round(float(part[0].confidence), 3),
            "confidence_to": round(float(part[-1].confidence), 3),
            "exact": round(sum(one.exact for one in part) / len(part), 3),
            "share_of_errors": round(sum(not one.exact for one in part) / wrong, 3),
            "share_of_errors_in_block": round(sum(not one.in_block for one in part) / outside, 3),
        }
        for part in (
            [ordered[place] for place in places]
            for places in np.array_split(np.arange(len(ordered)), FIFTHS)
        )
    ]


def headerless_summary(found: Sequence[Headerless]) -> list[dict[str, Any]]:
    """Give the share of headerless rows that were recognised, and whose texts are not recorded."""
    parts = {
        "files without a header": [one for one in found if one.whole_file],
        BELOW_A_HEADER: [one for one in found if not one.whole_file],
    }
    return [
        {
            "rows": name,
            "sheets": len(part),
            "recognised": round(float(np.mean([one.recognised for one in part])), 3),
            "not_recorded": round(
                float(np.mean([one.confidence < REVIEW_CONFIDENCE for one in part])), 3
            ),
        }
        for name, part in parts.items()
        if part
    ]


def reliability(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Compare the confidence in headers with how often they are right, in tenths."""
    found = [one for one in outcomes if one.row is not None]
    rows = []
    for lower in np.arange(0, 1, 0.1):
        part = [one for one in found if lower <= one.confidence < lower + 0.1 + (lower > 0.85)]
        if part:
            rows.append(
                {
                    "confidence": f"{lower:.1f}-{lower + 0.1:.1f}",
                    "files": len(part),
                    "mean_confidence": round(float(np.mean([one.confidence for one in part])), 3),
                    "exact": round(float(np.mean([one.exact for one in part])), 3),
                    "in_block": round(float(np.mean([one.in_block for one in part])), 3),
                    "for_review": bool(lower + 0.05 < REVIEW_CONFIDENCE),
                }
            )
    return rows


def kinds(counts: np.ndarray) -> dict[str, dict[str, float]]:
    """Give precision and recall of each kind of row; the two header labels count as one."""
    groups = {"header": list(HEADER_LABELS)} | {
        label.value: [place] for place, label in enumerate(LABELS) if place not in HEADER_LABELS
    }
    found: dict[str, dict[str, float]] = {}
    for name, places in groups.items():
        right = counts[np.ix_(places, places)].sum()
        precision = right / max(counts[:, places].sum(), 1)
        recall = right / max(counts[places].sum(), 1)
        found[name] = {
            "rows": int(counts[places].sum()),
            "precision": round(float(precision), 3),
            "recall": round(float(recall), 3),
            "f1": round(float(2 * precision * recall / max(precision + recall, 1e-9)), 3),
        }
    return found


def _print(report: dict[str, Any], console: Console) -> None:
    drawn = Grid(title="first header of each file", title_justify="left")
    columns = ("files", "in_block", "exact", "in_strict_block", "strictly_exact", "in_any_header")
    for name in ("tested on", *columns):
        drawn.add_column(name.replace("_", " "), justify="left" if name == "tested on" else "right")
    for name, row in report["headers"].items():
        drawn.add_row(name, *(f"{row[one]:g}" for one in columns))
    console.print(drawn)
    console.print(
        "in block: the found row is in the labelled header (blank rows do not end it); exact: it is"
        " its last row;\nstrict: a blank row ends the header; any: the row is labelled header."
    )
    for title, rows in (
        ("reliability: confidence against correctness", report["reliability"]),
        ("confidence, by fifths of the files", report["confidence"]),
        ("headerless rows, set unseen", report["headerless"]),
        ("kinds of rows", [{"kind": name, **row} for name, row in report["kinds"].items()]),
    ):
        drawn = Grid(title=title, title_justify="left")
        for name in rows[0]:
            drawn.add_column(name.replace("_", " "), justify="right")
        for row in rows:
            drawn.add_row(*(f"{cell}" for cell in row.values()))
        console.print(drawn)
    unseen = report["headers"].get("all, set unseen")
    if unseen:
        below = next(row for row in report["headerless"] if row["rows"] == BELOW_A_HEADER)
        for name, found, goal in (
            ("in block", unseen["in_block"], IN_BLOCK_GOAL),
            ("exact", unseen["exact"], EXACT_GOAL),
            ("headerless recognised", below["recognised"], HEADERLESS_GOAL),
        ):
            verdict = "reached" if found >= goal else "NOT reached"
            console.print(f"goal: {name} {goal}: {verdict}, {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("--no-folds", action="store_true")
    parser.add_argument("--errors", action="store_true", help="list the files that were missed")
    asked = parser.parse_args()
    console = Console(stderr=asked.json)
    made = samples(labelled_sheets(corpus_folder()))
    headers: dict[str, dict[str, float]] = {}
    if asked.shipped:
        weights = default_weights()
        outcomes = [evaluate(one.sheet, weights) for one in made if one.sheet.header]
        counts = np.zeros((len(LABELS), len(LABELS)), dtype=int)
        for one in made:
            count_kinds(one.sheet, weights, counts)
        headers["shipped weights, all seen"] = summary(outcomes)
        tried = [evaluate_headerless(one.sheet, weights) for one in made]
        headerless = [one for one in tried if one is not None]
    else:
        outcomes, headerless, counts = cross_validate(leave_one_set_out(made), console.log)
        for name in SETS:
            headers[f"{name}, set unseen"] = summary([one for one in outcomes if one.set == name])
        headers["all, set unseen"] = summary(outcomes)
        if not asked.no_folds:
            folded, _, _ = cross_validate(folds(made), console.log)
            headers[f"{FOLDS} folds over files"] = summary(folded)
    report = {
        "headers": headers,
        "confidence": errors_by_fifth(outcomes),
        "reliability": reliability(outcomes),
        "headerless": headerless_summary(headerless),
        "kinds": kinds(counts),
    }
    if asked.errors:
        report["errors"] = [asdict(one) for one in outcomes if not one.exact]
        for seen in (outcome for outcome in outcomes if not outcome.exact):
            console.print(seen.row, seen.confidence, seen.in_block, seen.name, soft_wrap=True)
    if asked.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report, console)


if __name__ == "__main__":
    main()
