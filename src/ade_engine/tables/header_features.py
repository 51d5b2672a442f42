"""Compute features that tell headers from the rows that look most like them.

Units rows and rows of column numbers end a header. A row of one cell ends a header if it names the
column that the row above leaves out, and is a heading if more such rows follow. A first row of data
has texts of the same shape as the rows below it; a header has not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ade_engine.sheets.arrays import BoolArray, FloatArray, IntArray
from ade_engine.tables.looks import CellLook
from ade_engine.tables.row_cells import RowCells

SHAPE_ROWS = 10  # rows below that are compared
ALONE_ROWS = 40
CONSISTENT_SHARE = 0.8
UNIT_CHARACTERS_MAX = 24

_UNIT = re.compile(
    r"[(\[].*[)\]]|[%‰$€£¥#°]+|[a-zµ]{1,3}[²³]?|[a-z]{1,4}\s?/\s?[a-z]{1,5}[²³]?"
    r"|(?:eur|usd|gbp|chf|jpy|kwh|mwh|gwh|pcs|days?|hours?|hrs?|years?|months?|weeks?|numbers?|no\."
    r"|percent(?:age)?|pct\.?|per\s?cent|thousands?|millions?|bn|mil\.?|mio\.?|dollars?|dol\.?|euros?"
    r"|pounds?|units?|kg|tons?|tonnes?|index|rate|ratio|count|text|date|integer|string|int)"
    r"(?:[\s.,/]+(?:of|per|eur|usd|gbp|dol\.?|dollars?|euros?|pounds?|persons?|people|year|tonnes?))*",
    re.I,
)


def header_features(cells: RowCells) -> dict[str, FloatArray]:
    """Return the features of each row by name."""
    count = np.maximum(cells.count, 1)
    units = np.array([[_is_unit(text) for text in row] for row in cells.texts], dtype=bool).reshape(
        cells.looks.shape
    )
    return {
        "unit_cells": (units & cells.filled).sum(axis=1) / count,
        "column_numbers": _column_numbers(cells),
        "alone_again": _alone_again(cells),
        **_complements(cells),
        **_shapes(cells),
    }


@lru_cache(maxsize=8192)
def _is_unit(text: str) -> bool:
    return bool(text) and len(text) <= UNIT_CHARACTERS_MAX and _UNIT.fullmatch(text) is not None


@lru_cache(maxsize=8192)
def shape_of(text: str) -> int:
    """Classify a text by the kinds of characters in it, and by its number of words."""
    if not text:
        return 0
    digits = any(map(str.isdigit, text))
    marks = any(character in "@/_:#|" for character in text)
    dashes = any(character in "-.,()&" for character in text)
    words = min(text.count(" "), 3)
    case = 0 if text.islower() else 1 if text.isupper() else 2
    return 1 + digits + 2 * marks + 4 * dashes + 8 * case + 24 * words


def _column_numbers(cells: RowCells) -> FloatArray:
    """Return the share of cells that count 1, 2, 3 or a, b, c from the row's first ones on."""
    found = np.zeros(len(cells))
    for row in np.flatnonzero(cells.count >= 3).tolist():
        columns = np.flatnonzero(cells.filled[row]).tolist()
        if any(_counter(cells, row, column) in (0, 1) for column in columns[:2]):
            numbers = [_counter(cells, row, column) for column in columns]
            found[row] = sum(b - a == 1 for a, b in pairwise(numbers)) / (len(numbers) - 1)
    return found


def _counter(cells: RowCells, row: int, column: int) -> float:
    if cells.known[row, column]:
        return float(cells.numbers[row, column])
    text = str(cells.texts[row, column]).strip("()[]. ").casefold()
    return float(ord(text) - ord("a") + 1) if len(text) == 1 and text.isalpha() else np.nan


def _alone_again(cells: RowCells) -> FloatArray:
    """Count, for rows of one cell, the later rows of one cell in the same column."""
    alone = cells.count == 1
    column = np.where(alone, cells.filled.argmax(axis=1), -1)
    found = np.zeros(len(cells))
    for row in np.flatnonzero(alone).tolist():
        found[row] = np.log1p((column[row + 1 : row + 1 + ALONE_ROWS] == column[row]).sum())
    return np.where(alone, found, -1.0)


def _complements(cells: RowCells) -> dict[str, FloatArray]:
    """Return the share of a row's cells that fill gaps of the row above, and of the row below."""
    count = np.maximum(cells.count, 1)
    found = {}
    for name, step in (("above", -1), ("below", 1)):
        other = _shifted(cells.filled, step)
        worded = (_shifted(cells.words | (cells.looks == CellLook.YEAR), step)).sum(axis=1) >= 2
        fills = (cells.filled & ~other).sum(axis=1) / count
        found[f"fills_gaps_{name}"] = np.where(worded, fills, 0.0)
    return found


def _shapes(cells: RowCells) -> dict[str, FloatArray]:
    """Compare the shapes of a row's texts with those of the rows below."""
    shapes = np.array([[shape_of(text) for text in row] for row in cells.texts], dtype=np.int64)
    shapes = np.where(cells.words, shapes.reshape(cells.looks.shape), 0)
    words = np.maximum(cells.words.sum(axis=1), 1)
    same = np.zeros(shapes.shape)
    below = np.zeros(shapes.shape)
    alike = np.zeros(shapes.shape)
    for distance in range(1, SHAPE_ROWS + 1):
        other = _shifted(shapes, distance)
        next_other = _shifted(shapes, distance + 1)
        below += other > 0
        same += (other > 0) & (other == shapes)
        alike += (other > 0) & (other == next_other)
    compared = cells.words & (below > 0)
    share = np.where(compared, same / np.maximum(below, 1), 0.0)
    consistent = compared & (alike >= CONSISTENT_SHARE * np.maximum(below - 1, 1)) & (below >= 3)
    return {
        "below_same_shape": share.sum(axis=1) / np.maximum(compared.sum(axis=1), 1),
        "below_other_shape": (consistent & (same == 0)).sum(axis=1) / words,
        "below_consistent_shape": (consistent & (share >= CONSISTENT_SHARE)).sum(axis=1) / words,
    }


def _shifted(cells: BoolArray | IntArray, distance: int) -> BoolArray | IntArray:
    """Return the rows that are `distance` further down; nothing outside."""
    moved = np.zeros_like(cells)
    if distance > 0:
        moved[:-distance] = cells[distance:]
    else:
        moved[-distance:] = cells[:distance]
    return moved
