"""The column that authors receive: three-valued masks, text, numbers, dates."""

import datetime as dt
from typing import Any

import numpy as np
import polars as pl
import pytest

from ade_engine.package import Column, Issue
from ade_engine.package.author_errors import Misuse
from ade_engine.package.result_coercion import cells_of_result
from ade_engine.sheets.cells import CellError

DAY = dt.date(2024, 2, 29)
MOMENT = dt.datetime.combine(DAY, dt.time(8, 30))


def marks(mask: Any) -> list[bool | None]:
    return [None if mark is None else bool(mark) for mark in mask.series.to_list()]


def test_an_empty_cell_neither_matches_nor_fails_to() -> None:
    column = Column(["AB12", "x", None])
    matched = column.matches(r"[A-Z]{2}\d\d")
    assert marks(matched) == [True, False, None]
    assert marks(~matched) == [False, True, None]
    assert column.share_matching(r"[A-Z]{2}\d\d") == 0.5


def test_a_match_is_of_the_whole_text() -> None:
    assert marks(Column(["a|b", "ab", "a"]).matches("a|b")) == [False, False, True]
    assert marks(Column(["xax"]).contains("a")) == [True]


def test_look_around_works_though_the_fast_engine_cannot() -> None:
    assert marks(Column(["ab", "ba", None]).matches(r"(?=a)\w+")) == [True, False, None]


def test_what_is_no_expression_is_said() -> None:
    with pytest.raises(Misuse):
        Column(["a"]).matches("(")


def test_text_operations_leave_other_cells_alone() -> None:
    column = Column([" a ", 5, DAY, True, None, CellError("#REF!")])
    assert column.strip().upper().values == ["A", 5, DAY, True, None, CellError("#REF!")]


def test_a_text_that_becomes_nothing_is_an_empty_cell() -> None:
    assert Column(["  ", "x"]).strip().values == [None, "x"]
    assert marks(Column(["  ", "x"]).is_empty()) == [True, False]


def test_numbers_are_compared_with_numbers_only() -> None:
    column = Column([1, 2, "a", None])
    assert marks(column > 1) == [False, True, None, None]
    assert marks(column == "a") == [False, False, True, None]
    assert marks(column != 1) == [False, True, True, None]


def test_columns_are_compared_row_by_row() -> None:
    first = Column([DAY, "a", 1, None])
    second = Column([DAY - dt.timedelta(1), "b", 1, 1])
    assert marks(first > second) == [True, False, False, None]
    assert marks(first == second) == [False, False, True, None]


def test_masks_combine() -> None:
    column = Column([1, 5, 9])
    assert marks((column > 1) & (column < 9)) == [False, True, False]
    assert marks((column == 1) | (column == 9)) == [True, False, True]
    with pytest.raises(Misuse, match="one value for each cell"):
        bool(column > 1)


def test_arithmetic_needs_numbers_on_both_sides() -> None:
    column = Column([1, "a", 3])
    assert (column + Column([1, 1, 1])).values == [2, None, 4]
    assert (column / 0).values == [None, None, None]
    assert column.sum() == 4
    assert Column([0.5, 1.5, -2.5, "x"]).round().values == [1, 2, -3, "x"]


def test_what_is_too_large_is_no_number() -> None:
    huge = Column([1e308, 1e308])
    assert (huge * 10).values == [None, None]
    assert (huge + huge).values == [None, None]
    assert huge.round(2).values == [1e308, 1e308]


def test_rows_above_are_reached_by_shifting() -> None:
    balance, amount = Column([10, 15, 12]), Column([10, 5, -2])
    assert marks(~balance.is_close(balance.shift(1) + amount)) == [None, False, True]
    assert amount.cumulative_sum().values == [10, 15, 13]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.50", 1234.5),
        ("(12)", -12),
        ("$ 5", 5),
        ("7-", -7),
        ("12.5 %", 0.125),
        ("1e3", 1000),
        ("−3", -3),
        ("EUR 1 000", 1000),
        ("12a", "12a"),
        ("1,23,4", "1,23,4"),
        ("(5", "(5"),
        ("nan", "nan"),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, number: object) -> None:
    assert Column([text]).as_number().values == [number]


def test_the_decimal_sign_is_a_setting() -> None:
    column = Column(["1.234,5", "1,5", "1.234"], decimal=",")
    assert column.as_number().values == [1234.5, 1.5, 1234]


@pytest.mark.parametrize(
    "text",
    ["2024-02-29", "2/29/2024", "29.02.2024", "29 Feb 2024", "February 29, 2024", "20240229"],
)
def test_dates_are_read_as_people_write_them(text: str) -> None:
    assert Column([text]).as_date().values == [DAY]


def test_day_or_month_first_is_a_setting_but_no_day_thirteen_is_a_month() -> None:
    assert Column(["1/2/2024"]).as_date().values == [dt.date(2024, 1, 2)]
    assert Column(["1/2/2024"], day_first=True).as_date().values == [dt.date(2024, 2, 1)]
    assert Column(["13/2/2024"]).as_date().values == [dt.date(2024, 2, 13)]


def test_what_is_no_date_stays() -> None:
    assert Column(["31.02.2024", "2024", "x1", 7]).as_date().values == [
        "31.02.2024",
        "2024",
        "x1",
        7,
    ]


def test_everything_can_be_written_as_text() -> None:
    column = Column([1, 2.5, True, DAY, MOMENT, dt.time(8, 30), "x", None])
    assert column.as_text().values == [
        "1",
        "2.5",
        "TRUE",
        "2024-02-29",
        "2024-02-29 08:30:00",
        "08:30:00",
        "x",
        None,
    ]


def test_a_function_is_asked_once_for_each_different_text() -> None:
    asked: list[object] = []

    def change(value: str) -> str:
        asked.append(value)
        return value * 2

    assert Column(["a", "b", "a", None]).map(change).values == ["aa", "bb", "aa", None]
    assert asked == ["a", "b"]


def test_a_mapping_changes_whole_values() -> None:
    assert Column(["a", "ab", 1]).map({"a": 1, 1: "one"}).values == [1, "ab", "one"]
    assert Column(["a", "ab"]).replace({"a": "x"}).values == ["x", "ab"]
    assert Column(["a.b"]).replace(".", "-").values == ["a-b"]
    assert Column(["a.b"]).replace(r"\.", "-", regex=True).values == ["a-b"]
    for swapped in (r"\2 \1", "$2 $1"):
        assert Column(["a, b"]).replace(r"(\w), (\w)", swapped, regex=True).values == ["b a"]
    assert Column(["a"]).replace("a", "$1").values == ["$1"]


def test_values_are_looked_up_by_kind() -> None:
    assert marks(Column([1, "1", True, None]).is_in([1])) == [True, False, False, None]
    assert marks(Column(["a", "b", "a"]).is_repeated()) == [True, False, True]
    assert marks(Column([1, "1"]).is_repeated()) == [False, False]


@pytest.mark.parametrize(
    "made",
    [
        ["a", "b"],
        ("a", "b"),
        pl.Series(["a", "b"]),
        np.array(["a", "b"]),
        Column(["a", "b"]),
    ],
)
def test_a_transform_may_give_back_any_column(made: object) -> None:
    assert cells_of_result(made, 2).values() == ["a", "b"]


def test_series_keep_their_types() -> None:
    assert cells_of_result(pl.Series([1.0, None, 2.5]), 3).values() == [1, None, 2.5]
    assert cells_of_result(pl.Series([True, False]), 2).values() == [True, False]
    assert cells_of_result(pl.Series([DAY]), 1).values() == [DAY]


@pytest.mark.parametrize("made", [None, "ab", ["a"], [object(), object()]])
def test_anything_else_is_refused(made: object) -> None:
    with pytest.raises(Misuse):
        cells_of_result(made, 2)


def test_nothing_shows_a_value() -> None:
    column = Column(["secret", "secret2"], field="name")
    assert "secret" not in repr(column)
    assert "secret" not in repr(column.is_text())


def test_issues_need_a_code_a_severity_and_a_fitting_mask() -> None:
    column = Column([1, 2])
    assert column.issues_where(column > 1, code="too_large").issue == Issue("too_large")
    with pytest.raises(Misuse, match="severity"):
        Issue("x", "fatal")
    with pytest.raises(Misuse, match="lower case"):
        Issue("Has Spaces")
    with pytest.raises(Misuse, match="has 1 cells"):
        column.issues_where(Column([1]) > 1, code="x")


def test_a_mapping_replaces_texts_by_values_of_any_kind() -> None:
    column = Column(["ja", "nein", "x", 5, None, "later"])
    day = dt.date(2024, 2, 29)
    changes = {"ja": True, "nein": False, "x": 1.5, "later": day}
    assert column.replace(changes).values == [True, False, 1.5, 5, None, day]
    assert column.replace({"ja": "yes", "x": None}).values == [
        "yes",
        "nein",
        None,
        5,
        None,
        "later",
    ]
    with pytest.raises(Misuse):
        column.replace({"ja": object()})


def test_a_column_knows_the_unit_of_its_header() -> None:
    assert Column([1], header="Amount (EUR)").unit == "EUR"
    assert Column([1], header="Amount").unit is None


def test_texts_that_an_author_rewrote_are_read_by_the_settings() -> None:
    column = Column(["1,5", "2,25"])
    assert column.as_number().values == [1.5, 2.25]
    assert column.replace(",", ".").as_number().values == [1.5, 2.25]
    assert column.strip().as_number().values == [1.5, 2.25]
    assert column.as_number(decimal=",").values == [1.5, 2.25]
    with pytest.raises(Misuse, match="decimal"):
        column.as_number(decimal=";")
