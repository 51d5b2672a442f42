"""Cells become Python values and Python values become cells."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.pipeline.python_values import cells_of_values, values_of
from ade_engine.sheets.cells import CellArray

DATES = st.dates(dt.date(1901, 1, 1), dt.date(2200, 1, 1))
MOMENTS = st.builds(dt.datetime.combine, DATES, st.times())
COLUMNS = st.one_of(
    *(
        st.lists(st.none() | one, max_size=8)
        for one in (
            st.text(alphabet="ab 1", min_size=1, max_size=4),
            st.integers(-(10**9), 10**9),
            st.floats(-1e9, 1e9),
            st.booleans(),
            DATES,
            MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
            st.sampled_from(["x", 1, True, dt.date(2024, 1, 1), 0.5]),
        )
    )
)


@given(COLUMNS)
def test_fast_values_are_the_plain_ones(values: list[object]) -> None:
    cells = CellArray.of(values)
    fast, plain = values_of(cells), cells.values()
    assert fast == plain
    assert [type(value) for value in fast] == [type(value) for value in plain]


@given(COLUMNS)
def test_values_put_into_cells_are_those_that_come_out(values: list[object]) -> None:
    assert cells_of_values(values) == CellArray.of(values)


@pytest.mark.parametrize("thing", [object(), [1], {"a": 1}, 1j, "\ud800"])
def test_what_no_cell_can_hold_is_refused(thing: object) -> None:
    assert cells_of_values([None, thing]) is None
