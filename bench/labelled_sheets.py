"""Read the labelled sheets of the corpus as the engine reads them, and compare what it finds."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ade_engine.sheets.workbook import open_workbook
from ade_engine.tables.grid import Grid
from ade_engine.tables.labels import LABELS, Label
from ade_engine.tables.sample import sample_sheet

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
BELOW_ROWS_MAX = 60
BELOW_DATA_ROWS_MIN = 3
SETS = ("deex", "cius", "govuk")

LABEL_OF = {
    "data": Label.DATA,
    "metadata": Label.PREAMBLE,
    "notes": Label.NOTE,
    "derived": Label.TOTAL,
    "group": Label.GROUP,
}


@dataclass(frozen=True)
class LabelledSheet:
    """One file of the corpus: what people said of its rows, and the grid that the engine sees."""

    path: Path
    name: str
    labels: tuple[str, ...]
    grid: Grid

    @property
    def set(self) -> str:
        """Name the set that the file comes from."""
        return self.name.split("/")[0]

    @cached_property
    def header(self) -> tuple[int, ...]:
        """Give the rows of the first header; blank rows do not end it."""
        found: list[int] = []
        for row, label in enumerate(self.labels, 1):
            if label == "header":
                found.append(row)
            elif found and label != "empty":
                break
        return tuple(found)

    @cached_property
    def strict_header(self) -> tuple[int, ...]:
        """Give the rows of the first header up to the first blank row."""
        rows = self.header
        return tuple(row for place, row in enumerate(rows) if row - rows[0] == place)

    def below_header(self) -> Grid | None:
        """Give the first rows below the first header and above the next, if they hold data."""
        last = self.header[-1] if self.header else 0
        rows = self.grid.rows
        later = [row for row in rows.tolist() if row > last and self.labels[row - 1] == "header"]
        inside = np.flatnonzero((rows > last) & (rows < min([*later, rows[-1] + 1], default=0)))
        inside = inside[:BELOW_ROWS_MAX]
        labels = [self.labels[row - 1] for row in rows[inside].tolist()]
        if labels.count("data") < BELOW_DATA_ROWS_MIN:
            return None
        return self.grid.band(int(inside[0]), int(inside[-1]), range(self.grid.width))

    def targets(self) -> npt.NDArray[np.int64]:
        """Give the label of each row of the grid that is not blank."""
        places = np.flatnonzero(~self.grid.blank)
        return row_targets(self.labels, self.grid.rows[places].tolist())


def row_targets(labels: tuple[str, ...], rows: list[int]) -> npt.NDArray[np.int64]:
    """Number the labels of some rows; the last row of a header has its own label."""
    targets = []
    for row in rows:
        label = labels[row - 1]
        if label == "header":
            after = next((one for one in labels[row:] if one != "empty"), None)
            targets.append(Label.HEADER if after == "header" else Label.HEADER_END)
        else:
            targets.append(LABEL_OF.get(label, Label.DATA))
    return np.array([LABELS.index(target) for target in targets], dtype=np.int64)


def corpus_folder() -> Path:
    """Find the corpus, or end with a line that says what is missing."""
    folder = Path(os.environ.get("ADE_TEST_CORPUS") or CORPUS) / "lines"
    if not (folder / "labels.jsonl").is_file():
        sys.exit(f"there is no {folder}/labels.jsonl; ADE_TEST_CORPUS names the corpus")
    return folder


def labelled_sheets(folder: Path) -> Iterator[LabelledSheet]:
    """Read every labelled file."""
    for line in (folder / "labels.jsonl").read_text().splitlines():
        entry = json.loads(line)
        path = folder / entry["file"]
        with open_workbook(path) as book:
            grid = sample_sheet(book.sheets[0].scan()).grid
        yield LabelledSheet(path, entry["file"], tuple(entry["labels"]), grid)
