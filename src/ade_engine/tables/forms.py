"""Tell forms, whose rows are a name and its value, from tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ade_engine.tables.grid import Grid
from ade_engine.tables.looks import CellLook

KEY_VALUE_ROWS_MIN = 3
KEY_VALUE_SHARE = 0.8  # of the rows that are a name and a value
KEY_VALUE_MIXED_SHARE = 0.15  # of the values that are of another type than most
KEY_VALUE_MIXED_ROWS_MIN = 1
KEY_CHARACTERS_MAX = 60


def is_key_value(grid: Grid, places: Sequence[int]) -> bool:
    """Return whether each row is a name and its value, as in a form."""
    if len(places) < KEY_VALUE_ROWS_MIN:
        return False
    filled = grid.filled[places]
    looks = grid.looks[places]
    first = filled.argmax(axis=1)
    rows = np.arange(len(places))
    names = grid.texts[places][rows, first]
    paired = (filled.sum(axis=1) == 2) & (looks[rows, first] == CellLook.WORDS)
    short = np.array([len(name) <= KEY_CHARACTERS_MAX for name in names])
    one_column = np.bincount(first).max() >= KEY_VALUE_SHARE * len(places)
    distinct = len(set(names)) >= KEY_VALUE_SHARE * len(places)
    first_value = (filled & (np.arange(filled.shape[1]) > first[:, None])).argmax(axis=1)
    values = looks[rows, first_value][1:][paired[1:]]  # the first row may be a header
    kinds = np.bincount(values, minlength=len(CellLook))
    kinds[CellLook.MARK] = 0
    second = np.sort(kinds)[-2]  # one type of value alone is a column of a table
    mixed = second >= max(KEY_VALUE_MIXED_ROWS_MIN, KEY_VALUE_MIXED_SHARE * len(places))
    return bool(one_column and distinct and mixed and (paired & short).mean() >= KEY_VALUE_SHARE)
