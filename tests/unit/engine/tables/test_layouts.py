"""Tables of made layouts are found again: beside, below, offset, with titles, units and notes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.tables.layouts import LAYOUTS, Layout, make_table

from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import Doubt, SheetTables
from ade_engine.tables.spans import RowSpans

SHEETS = 12
EXACT_MIN = 0.75  # of the sheets of each layout


def is_exact(layout: Layout, found: SheetTables) -> bool:
    ranges = {str(table.range) for table in found.tables}
    return ranges == {str(truth.range) for truth in layout.truths}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_tables_of_a_layout_are_found_again(name: str) -> None:
    made = [LAYOUTS[name](Random(seed)) for seed in range(1000, 1000 + SHEETS)]
    exact = [is_exact(layout, find_tables(layout.sheet())) for layout in made]
    assert sum(exact) >= EXACT_MIN * SHEETS


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.integers(0, 10_000))
def test_no_row_of_a_layout_is_lost(name: str, seed: int) -> None:
    layout = LAYOUTS[name](Random(seed))
    found = find_tables(layout.sheet())
    known = {row for spans in found.unused.values() for row in spans.rows()}
    for table in found.tables:
        spans = [RowSpans.of(table.header_rows), table.data_rows, *table.skipped.values()]
        known |= {row for one in spans for row in one.rows()}
    assert {row for row, _ in layout.cells} <= known


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.integers(0, 10_000))
def test_every_row_that_is_left_out_of_a_layout_has_one_reason(name: str, seed: int) -> None:
    for table in find_tables(LAYOUTS[name](Random(seed)).sheet()).tables:
        left_out = sorted(row for spans in table.skipped.values() for row in spans.rows())
        reasons = sorted(row for spans in table.reasons.values() for row in spans.rows())
        assert left_out == reasons


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    left=st.integers(5, 60),
    right=st.integers(5, 60),
    top=st.integers(1, 12),
    gap=st.integers(1, 4),
    numeric=st.booleans(),
)
def test_a_table_beside_another_is_never_lost(
    seed: int, left: int, right: int, top: int, gap: int, numeric: bool
) -> None:
    random = Random(seed)
    layout = Layout()
    first = make_table(random, rows=left, key="name", numeric_id=numeric)
    second = make_table(random, rows=right, key="item", numeric_id=numeric)
    layout.put(first, 1, 1)
    layout.put(second, top, first.width + 1 + gap)
    found = find_tables(layout.sheet())
    if not is_exact(layout, found):  # one table with a gap is the other reading of the same cells
        assert abs(left + 1 - (top + right)) <= 2


def test_a_roster_beside_another_is_found_with_all_its_rows() -> None:
    random = Random(7)
    layout = Layout()
    staff = make_table(random, rows=41, columns=("name", "town", "date"))
    guests = make_table(random, rows=66, columns=("code", "email", "count"))
    layout.put(staff, 1, 1)
    layout.put(guests, 1, 5)
    first, second = find_tables(layout.sheet()).tables
    assert (first.data_rows.count, second.data_rows.count) == (41, 66)


def test_a_short_table_beside_a_long_one_has_no_rows_of_the_other() -> None:
    random = Random(8)
    layout = Layout()
    layout.put(make_table(random, rows=4000, columns=("name", "town", "amount")), 1, 1)
    layout.put(make_table(random, rows=66, columns=("item", "code", "count")), 1, 5)
    first, second = find_tables(layout.sheet()).tables
    assert (first.data_rows.count, second.data_rows.count) == (4000, 66)


def test_two_tables_that_may_be_one_are_for_a_person_to_check() -> None:
    random = Random(9)
    layout = Layout()
    layout.put(make_table(random, rows=14, columns=("name", "town", "amount")), 1, 1)
    layout.put(make_table(random, rows=14, columns=("code", "status", "count")), 1, 5)
    tables = find_tables(layout.sheet()).tables
    assert [table.data_rows.count for table in tables] == [14, 14]
    assert all(Doubt.SIDE_BY_SIDE in table.doubts for table in tables)


def test_subheaders_that_name_their_group_do_not_tear_a_table_apart() -> None:
    random = Random(10)
    layout, row = Layout(), 1
    for town in ("Oslo", "Lima", "Riga"):
        part = make_table(random, rows=6, columns=("name", "code", "amount"))
        part.rows[0] = [f"Branch {town}", "Code", "Amount"]
        layout.put(part, row, 1)
        row += part.height
    (table,) = find_tables(layout.sheet()).tables
    assert table.data_rows.count == 18
