"""Sets of rows are stored as runs."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.tables.spans import RowSpans

rows = st.sets(st.integers(1, 300))


@given(rows)
def test_runs_hold_just_the_rows_they_were_made_of(numbers: set[int]) -> None:
    spans = RowSpans.of(numbers)
    assert set(spans.rows()) == numbers
    assert spans.count == len(numbers)
    assert bool(spans) is bool(numbers)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(spans))
    assert spans == RowSpans.of(np.array(sorted(numbers), dtype=np.int64)) == RowSpans(spans.runs)


@given(rows, st.integers(1, 300), st.integers(0, 50))
def test_a_mask_says_which_rows_of_a_block_belong(
    numbers: set[int], first_row: int, height: int
) -> None:
    spans = RowSpans.of(numbers)
    expected = [row in numbers for row in range(first_row, first_row + height)]
    assert spans.mask(first_row, height).tolist() == expected
    assert [row in spans for row in range(first_row, first_row + height)] == expected


@given(rows)
def test_gaps_are_the_rows_between(numbers: set[int]) -> None:
    expected = set(range(min(numbers), max(numbers) + 1)) - numbers if numbers else set()
    assert set(RowSpans.of(numbers).gaps().rows()) == expected
