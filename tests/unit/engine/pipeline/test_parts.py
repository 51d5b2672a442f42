"""The parts of the passes: runs of rows, the ledger, values of cells and back, the layout."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.package import Issue
from ade_engine.pipeline.issue_log import LINES_MAX, RANGES_MAX, IssueLog, RowRuns
from ade_engine.pipeline.python_values import cells_of_values, values_of
from ade_engine.pipeline.write_output import unique_names
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


rows = st.lists(st.integers(1, 400), unique=True).map(sorted)


@given(rows, st.integers(1, 50))
def test_runs_do_not_depend_on_how_rows_arrive(numbers: list[int], size: int) -> None:
    whole, pieces = RowRuns(), RowRuns()
    whole.add(np.array(numbers, np.int64))
    for start in range(0, len(numbers), size):
        pieces.add(np.array(numbers[start : start + size], np.int64))
    assert (pieces.count, pieces.kept) == (whole.count, whole.kept)
    assert sum(last - first + 1 for first, last in whole.kept) == len(numbers) or whole.omitted


def test_only_so_many_runs_are_kept() -> None:
    runs = RowRuns()
    runs.add(np.arange(1, 1000, 2))
    assert (runs.count, len(runs.kept), runs.omitted) == (500, RANGES_MAX, 500 - RANGES_MAX)
    assert runs.ranges(28)[0] == "AB1"


def test_a_ledger_keeps_texts_of_the_package_only() -> None:
    ledger = IssueLog(frozenset({"known", "A message."}))
    ledger.authored("a", "col.a.validate", Issue("known", "info", "A message."), np.array([1, 2]))
    ledger.authored("a", "col.a.validate", Issue("unknown", "error", "Another."), np.array([3]))
    first, second = ledger.as_json({"a": 2})
    assert (first["code"], first["message"], first["message_withheld"]) == (
        "undeclared_code",
        "",
        True,
    )
    assert (second["code"], second["message"], second["ranges"]) == (
        "known",
        "A message.",
        ["B1:B2"],
    )
    assert ledger.counts() == {"errors": 1, "warnings": 0, "infos": 2}


def test_a_ledger_has_room_for_so_many_lines() -> None:
    codes = [f"code_{number}" for number in range(LINES_MAX + 5)]
    ledger = IssueLog(frozenset(codes))
    for code in codes:
        ledger.authored("a", "r", Issue(code), np.array([1]))
    assert (len(ledger.lines), ledger.lines_omitted) == (LINES_MAX, 5)


def test_names_are_made_different() -> None:
    assert unique_names(["ID", "id", "x", "ID"]) == ["ID", "id (2)", "x", "ID (3)"]
