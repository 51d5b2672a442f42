import datetime as dt

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.sheets.cells import Block, CellArray, CellError, CellKind

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
moments = st.datetimes(dt.datetime(1900, 3, 1), dt.datetime(9999, 12, 31)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
values = st.one_of(
    st.none(),
    texts,
    st.integers(-(2**52), 2**52),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.dates(dt.date(1900, 3, 1)),
    moments,
    st.sampled_from(["#REF!", "#N/A"]).map(CellError),
)


def _plain(value: object) -> object:
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    return value


@given(st.lists(values))
def test_values_lead_back_to_themselves(given_values: list[object]) -> None:
    found = CellArray.of(given_values).values()
    assert found == [_plain(value) for value in given_values]
    assert CellArray.of(found) == CellArray.of(given_values)


def test_a_time_of_day_is_neither_a_date_nor_a_number() -> None:
    column = CellArray.of([dt.time(13, 45, 30)])
    assert column.kinds.tolist() == [CellKind.DATE]
    assert column.values() == [dt.time(13, 45, 30)]


@given(st.lists(values, min_size=1), st.data())
def test_a_slice_holds_the_same_cells(given_values: list[object], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(given_values)))
    stop = data.draw(st.integers(start, len(given_values)))
    column = CellArray.of(given_values)
    assert column.slice(start, stop).values() == column.values()[start:stop]
    assert CellArray.joined([column.slice(0, start), column.slice(start, len(column))]) == column


def test_the_cells_that_a_mask_marks_are_given() -> None:
    column = CellArray.of(["a", 1, None, "b"])
    assert column.where(column.is_kind(CellKind.TEXT)).values() == ["a", "b"]


def test_a_column_shows_what_it_holds_without_a_value() -> None:
    assert repr(CellArray.of(["secret", 17, None])) == "<CellArray of 3: 1 empty, 1 text, 1 number>"


def test_a_formula_without_a_value_is_no_empty_cell() -> None:
    kinds = np.array([CellKind.EMPTY, CellKind.NO_VALUE], np.uint8)
    column = CellArray(kinds, np.full(2, np.nan), pl.Series([None, None], dtype=pl.String))
    assert column.values() == [None, None]
    assert column.is_kind(CellKind.NO_VALUE).tolist() == [False, True]


def test_rows_are_cut_out_of_a_block() -> None:
    block = Block(
        10, 4, {2: CellArray.of(["a", "b", "c", "d"]), 3: CellArray.of([1, None, None, 2])}
    )
    cut = block.rows(11, 12)
    assert list(cut.values()) == [(11, {2: "b"}), (12, {2: "c"})]
    assert list(cut.columns) == [2]
    assert block.rows(1, 100).height == 4
    assert block.rows(50, 60).height == 0
    assert cut.column(9).values() == [None, None]
