"""Find the table of a sheet with one column: a list, with or without a header.

The model compares columns, and one column gives it little to compare. A run of short texts or
values is a list; sentences are not.
"""

from __future__ import annotations

import numpy as np

from ade_engine.sheets.arrays import IntArray
from ade_engine.tables.assembly import DraftTables, TableDraft
from ade_engine.tables.grid import Grid
from ade_engine.tables.header_features import shape_of
from ade_engine.tables.looks import CellLook
from ade_engine.tables.regions import RowKind, SkipReason, TableShape
from ade_engine.tables.spans import RowSpans

ROWS_MIN = 3
VALUES_SHARE = 0.8
USUAL_CHARACTERS_MAX = 30
CHARACTERS_MAX = 60
SENTENCES_SHARE_MAX = 0.2
SHAPE_SHARE = 0.9
CERTAIN, LIKELY, UNCERTAIN = 0.95, 0.9, 0.5  # that the first row is a header, or is not


def list_table(grid: Grid, left_out: RowSpans) -> DraftTables | None:
    """Return the list in a grid of one column, or None if it is not a list."""
    places = np.flatnonzero(~grid.blank)
    block = places if left_out else _longest_run(places)
    if len(block) < ROWS_MIN or not _is_list(grid, block):
        return None
    has_header, confidence = _header(grid, block)
    draft = TableDraft(
        header=[int(block[0])] if has_header else [],
        body=block[1 if has_header else 0 :].tolist(),
        stretches=list(left_out),
        confidence=confidence,
        shape=TableShape.HEADED if has_header else TableShape.HEADERLESS,
    )
    draft.skip(RowKind.PREAMBLE, places[places < block[0]].tolist())
    draft.skip(RowKind.FOOTER, places[places > block[-1]].tolist())
    for skipped in draft.skipped.values():
        draft.reasons |= dict.fromkeys(skipped, SkipReason.SINGLE_CELL)
    return DraftTables([draft])


def _longest_run(places: IntArray) -> IntArray:
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return max(runs, key=len)


def _is_list(grid: Grid, block: IntArray) -> bool:
    looks, texts = grid.looks[block, 0], grid.texts[block, 0]
    if (looks != CellLook.WORDS).mean() >= VALUES_SHARE:
        return True
    lengths = np.array([len(text) for text in texts])
    sentences = np.mean([text.endswith((".", ":", ";", "!", "?", ",")) for text in texts])
    return bool(
        np.median(lengths) <= USUAL_CHARACTERS_MAX
        and lengths.max() <= CHARACTERS_MAX
        and sentences <= SENTENCES_SHARE_MAX
    )


def _header(grid: Grid, block: IntArray) -> tuple[bool, float]:
    """Return whether the first row is a header, and the confidence in it."""
    looks, texts = grid.looks[block, 0], grid.texts[block, 0]
    if looks[0] != CellLook.WORDS:
        return False, CERTAIN
    if (looks[1:] != CellLook.WORDS).mean() >= VALUES_SHARE:
        return True, CERTAIN
    if texts[0] in set(texts[1:]):
        return False, LIKELY
    shapes = [shape_of(text) for text in texts]
    usual = max(set(shapes[1:]), key=shapes[1:].count)
    consistent = shapes[1:].count(usual) >= SHAPE_SHARE * len(shapes[1:])
    if consistent and shapes[0] != usual:
        return True, LIKELY
    return True, UNCERTAIN
