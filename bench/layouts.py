"""Measure how often the tables of made sheets are found exactly, by layout.

`scripts/bench layouts` makes sheets of each layout (side by side, stacked, offset, with notes,
totals, units rows, merged cells and so on), finds their tables with the weights that ship, and
prints the share of tables whose range is exact, and of sheets in which all are and nothing else
is found. `--errors` lists the sheets that are not exact.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from random import Random

import numpy as np
from rich.console import Console
from rich.table import Table as Drawn
from tests.unit.engine.tables.layouts import LAYOUTS, Layout

from ade_engine.tables.finder import find_tables

SHEETS = 60
GOAL = 0.75


@dataclass(frozen=True)
class Score:
    """How well the tables of one sheet were found."""

    tables: float  # share of its tables whose range is exact
    headers: float  # share of its tables whose header and data rows are exact
    exact: bool  # every table is exact, and nothing else was found
    detail: str


def score(layout: Layout) -> Score:
    """Find the tables of a sheet and compare them with those that were put there."""
    found = find_tables(layout.sheet()).tables
    ranges = {str(table.range) for table in found}
    wanted = {str(truth.range) for truth in layout.truths}
    rows = {(table.header_rows, tuple(table.data_rows.rows())) for table in found}
    right = [(truth.header_rows, truth.data_rows) in rows for truth in layout.truths]
    return Score(
        len(ranges & wanted) / len(wanted),
        float(np.mean(right)),
        ranges == wanted,
        f"wanted {sorted(wanted)}, found {sorted(ranges)}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheets", type=int, default=SHEETS, help="of each layout")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--only", help="one layout")
    asked = parser.parse_args()
    console = Console(stderr=asked.json)
    report = {}
    for name, make in LAYOUTS.items():
        if asked.only not in (None, name):
            continue
        scores = [score(make(Random(seed))) for seed in range(asked.sheets)]
        report[name] = {
            "tables": round(float(np.mean([one.tables for one in scores])), 3),
            "rows": round(float(np.mean([one.headers for one in scores])), 3),
            "exact": round(float(np.mean([one.exact for one in scores])), 3),
        }
        for seed, one in enumerate(scores):
            if asked.errors and (not one.exact or one.headers < 1):
                console.print(name, seed, one.detail, soft_wrap=True)
    mean = {
        key: round(float(np.mean([row[key] for row in report.values()])), 3)
        for key in ("tables", "rows", "exact")
    }
    if asked.json:
        print(json.dumps({"layouts": report, "mean": mean}, indent=2))
        return
    drawn = Drawn("layout", "tables exact", "header and data exact", "sheets exact")
    for name, row in {**report, "mean of layouts": mean}.items():
        drawn.add_row(name.replace("_", " "), *(f"{row[key]:.2f}" for key in mean))
    console.print(drawn)
    verdict = "reached" if mean["exact"] >= GOAL else "NOT reached"
    console.print(f"goal: {GOAL} of the sheets exact, averaged over layouts: {verdict}")


if __name__ == "__main__":
    main()
