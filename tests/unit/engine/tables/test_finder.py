"""The tables of small sheets: headers, data, and other rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.tables.sheets import HEADER, MadeSheet, people

from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import RowKind, TableRegion, TableShape
from ade_engine.tables.spans import RowSpans

BLANK: list[Any] = []
TITLE: list[Any] = ["Accounts of the northern branch"]


def only_table(rows: list[Any], **options: Any) -> TableRegion:
    tables = find_tables(MadeSheet(rows, **options)).tables
    assert len(tables) == 1, [str(table.range) for table in tables]
    return tables[0]


def test_a_plain_table_is_found() -> None:
    table = only_table([HEADER, *people(20)])
    assert str(table.range) == "A1:D21"
    assert table.header_rows == (1,)
    assert table.header == ("Name", "Town", "Account", "Amount")
    assert str(table.data_range) == "A2:D21"
    assert table.data_rows == RowSpans([(2, 21)])
    assert table.columns == (1, 2, 3, 4)
    assert table.skipped == {}


def test_a_preamble_and_blank_rows_are_not_data() -> None:
    rows = [TITLE, ["As of May"], BLANK, HEADER, *people(6), BLANK, *people(5, 7)]
    table = only_table(rows)
    assert table.header_rows == (4,)
    assert table.data_rows == RowSpans([(5, 10), (12, 16)])
    assert table.skipped[RowKind.PREAMBLE] == RowSpans([(1, 2)])
    assert table.skipped[RowKind.BLANK] == RowSpans([(3, 3), (11, 11)])


def test_rows_of_a_header_are_joined() -> None:
    upper = ["Person", None, "Booking", None]
    rows = [TITLE, BLANK, upper, HEADER, *people(12)]
    table = only_table(rows)
    assert table.header_rows == (3, 4)
    assert table.header == ("Person Name", "Person Town", "Booking Account", "Booking Amount")


def test_merged_header_cells_speak_for_all_their_columns_and_no_others() -> None:
    upper = ["Person", None, "Booking", None]
    rows = [upper, HEADER, *people(12)]
    table = only_table(rows, merged=["A1:B1"])
    assert table.header == ("Person Name", "Person Town", "Booking Account", "Amount")


def test_a_header_cell_merged_over_two_rows_is_said_once() -> None:
    rows: list[Any] = [
        ["Name", "Town", "Booking", None],
        [None, None, "Account", "Amount"],
        *people(12),
    ]
    table = only_table(rows, merged=["A1:A2", "B1:B2", "C1:D1"])
    assert table.header_rows == (1, 2)
    assert table.header == ("Name", "Town", "Booking Account", "Booking Amount")


def test_years_in_a_header_are_written_as_years() -> None:
    header = ["Region", 2019.0, 2020, dt.date(2021, 1, 1)]
    data = [[f"Region {n}", 10.5 * n, 11.25 * n, 12.75 * n] for n in range(1, 12)]
    assert only_table([header, *data]).header == ("Region", "2019", "2020", "2021-01-01")


def test_a_total_is_not_data() -> None:
    data = people(9)
    total = ["Total", None, None, sum(row[3] for row in data)]
    table = only_table([HEADER, *data, total])
    assert table.data_rows == RowSpans([(2, 10)])
    assert table.skipped[RowKind.TOTAL] == RowSpans([(11, 11)])
    assert str(table.range) == "A1:D11"


def test_a_company_called_total_is_data() -> None:
    rows = [[f"{name} Ltd", "Bern", 100 + n, 7.5 * n] for n, name in enumerate("ABCDEFGH", 1)]
    rows.insert(4, ["Total Energy Services of Norway", "Oslo", 104, 11.0])
    assert only_table([HEADER, *rows]).data_rows.count == 9


def test_notes_below_are_not_data() -> None:
    notes = ["Source: the ledger of the branch, as it was on the day of printing."]
    table = only_table([TITLE, HEADER, *people(9), BLANK, notes])
    assert table.data_rows == RowSpans([(3, 11)])
    assert 13 in table.skipped.get(RowKind.NOTE, table.skipped.get(RowKind.FOOTER, RowSpans()))


def test_tables_one_under_another_are_separated() -> None:
    other = ["Item", "Colour", "Weight", "Price"]
    things = [[f"Thing {n}", "red", 5 * n, 1.25 * n] for n in range(1, 9)]
    rows = [TITLE, HEADER, *people(8), BLANK, BLANK, ["Stock"], other, *things]
    first, second = find_tables(MadeSheet(rows)).tables
    assert (first.header_rows, first.data_rows) == ((2,), RowSpans([(3, 10)]))
    assert (second.header_rows, second.data_rows) == ((14,), RowSpans([(15, 22)]))
    assert second.skipped[RowKind.PREAMBLE] == RowSpans([(13, 13)])
    assert second.header == ("Item", "Colour", "Weight", "Price")


def test_a_header_repeated_on_each_page_is_skipped() -> None:
    rows = [TITLE, HEADER, *people(10), BLANK, HEADER, *people(10, 11)]
    table = only_table(rows)
    assert table.header_rows == (2,)
    assert table.data_rows == RowSpans([(3, 12), (15, 24)])
    assert table.skipped[RowKind.REPEATED_HEADER] == RowSpans([(14, 14)])


def test_tables_side_by_side_are_separated() -> None:
    left, right = people(12), people(6, 40)
    rows = [[*HEADER, None, *HEADER]]
    rows += [[*one, None, *(right[n] if n < len(right) else [])] for n, one in enumerate(left)]
    first, second = find_tables(MadeSheet(rows)).tables
    assert (str(first.range), str(second.range)) == ("A1:D13", "F1:I7")
    assert first.data_rows == RowSpans([(2, 13)])
    assert second.data_rows == RowSpans([(2, 7)])
    assert second.columns == (6, 7, 8, 9)


def test_a_gap_between_columns_of_figures_divides_nothing() -> None:
    header = ["Region", "Births", "Deaths", None, "Arrivals", "Departures"]
    data = [[f"Region {n}", 12 * n, 7 * n, None, 3 * n, 2 * n] for n in range(1, 15)]
    table = only_table([header, *data])
    assert table.columns == (1, 2, 3, 5, 6)


def test_data_without_a_header_is_a_table_without_one() -> None:
    rows: list[Any] = [
        [1000 + n, round(3.5 * n, 2), n * n, round(0.1 * n, 3)] for n in range(1, 30)
    ]
    table = only_table(rows)
    assert table.shape is TableShape.HEADERLESS
    assert (table.header_rows, table.header) == ((), ("",) * 4)
    assert table.data_rows == RowSpans([(1, 29)])


def test_an_empty_sheet_has_no_table() -> None:
    assert find_tables(MadeSheet([])).tables == ()
    assert find_tables(MadeSheet([["  "], [""]])).tables == ()


def test_a_sheet_of_prose_has_no_data() -> None:
    rows: list[Any] = [
        ["Dear colleagues,"],
        ["please find below what was agreed in the meeting of last week."],
        ["Nothing of it is a table."],
    ]
    structure = find_tables(MadeSheet(rows))
    assert sum(table.data_rows.count for table in structure.tables) <= 1


def test_numbers_written_as_text_count_as_numbers() -> None:
    as_text = [[str(cell) for cell in row] for row in people(15)]
    table = only_table([TITLE, HEADER, *as_text])
    assert table.header_rows == (2,)
    assert table.data_rows.count == 15


def test_why_adds_up_to_how_much_the_row_looks_like_a_header() -> None:
    table = only_table([TITLE, BLANK, HEADER, *people(15)])
    assert table.confidence > 0.5
    assert all(one.rule.startswith("row.header.") for one in table.why)
    assert table.why[0].rule == "row.header.base"
    assert 0.5 < sum(one.delta for one in table.why) <= 1.001


@settings(max_examples=8)
@given(blank=st.integers(0, 3), titles=st.integers(1, 3), data=st.integers(8, 30))
def test_rows_put_above_shift_everything(blank: int, titles: int, data: int) -> None:
    rows = [TITLE, BLANK, HEADER, *people(data)]
    before = only_table(rows)
    above = [["Branch report"], ["Printed for the board"], ["All amounts in crowns"]][:titles]
    after = only_table([*above, *[BLANK] * blank, *rows])
    shift = titles + blank
    assert after.header_rows == tuple(row + shift for row in before.header_rows)
    assert after.header == before.header
    assert list(after.data_rows) == [(a + shift, b + shift) for a, b in before.data_rows]


@settings(max_examples=8)
@given(empty=st.integers(1, 40), data=st.integers(5, 25))
def test_empty_columns_on_the_left_shift_columns_and_nothing_else(empty: int, data: int) -> None:
    rows = [TITLE, BLANK, HEADER, *people(data)]
    before = only_table(rows)
    after = only_table([[*[None] * empty, *row] for row in rows])
    assert after.columns == tuple(column + empty for column in before.columns)
    assert after.range.first_column == before.range.first_column + empty
    assert (after.header_rows, after.header) == (before.header_rows, before.header)
    assert after.data_rows == before.data_rows
    assert after.confidence == before.confidence


@settings(max_examples=8)
@given(st.integers(1, 50))
def test_the_size_of_blocks_changes_nothing(block_rows: int) -> None:
    rows = [TITLE, BLANK, HEADER, *people(30), BLANK, ["Total", None, None, 2000]]
    assert find_tables(MadeSheet(rows, block_rows=block_rows)) == find_tables(MadeSheet(rows))


cells = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.dates(dt.date(1950, 1, 1), dt.date(2050, 1, 1)),
    st.booleans(),
)


@given(st.lists(st.lists(cells, max_size=8), max_size=25))
def test_every_row_is_of_one_kind_whatever_the_sheet(rows: list[Any]) -> None:
    sheet = MadeSheet(rows)
    structure = find_tables(sheet)
    for table in structure.tables:
        kinds = [RowSpans.of(table.header_rows), table.data_rows, *table.skipped.values()]
        numbers = [row for spans in kinds for row in spans.rows()]
        assert len(numbers) == len(set(numbers))
        assert set(numbers) <= set(range(1, sheet.height + 1))
        assert len(table.header) == len(table.columns)
        assert 0 <= table.confidence <= 1
    assert find_tables(sheet) == structure


@pytest.mark.parametrize("rows", [3000, 40_000])
def test_a_long_table_is_one_table_with_its_odd_rows(rows: int) -> None:
    data = people(rows)
    for place in (rows // 3, rows // 2):
        data[place] = ["Subtotal", None, None, 12345.5]
    data[rows // 4] = []
    table = only_table([TITLE, HEADER, *data], block_rows=4096)
    assert table.header_rows == (2,)
    assert table.skipped[RowKind.TOTAL].count == 2
    assert table.skipped[RowKind.BLANK] == RowSpans([(rows // 4 + 3,) * 2])
    assert table.data_rows.count == rows - 3
    assert (table.data_rows.first, table.data_rows.last) == (3, rows + 2)


def test_columns_beyond_the_sampled_ones_belong_to_the_table() -> None:
    header = [f"Field {number}" for number in range(1, 301)]
    data = [[row * number for number in range(1, 301)] for row in range(1, 12)]
    table = only_table([header, *data])
    assert str(table.range) == "A1:KN12"
    assert len(table.columns) == 300
    assert table.header[-1] == "Field 300"


def test_totals_are_found_in_a_table_with_too_many_of_them_to_look_at() -> None:
    data = people(30_000)
    places = range(5, 30_000, 6)
    for place in places:
        data[place] = ["Total", None, None, 12.5]
    table = only_table([HEADER, *data], block_rows=8192)
    assert table.skipped[RowKind.TOTAL].count == len(places)
    assert table.data_rows.count == 30_000 - len(places)
