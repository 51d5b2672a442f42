import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.sheets.coordinates import (
    COLUMNS_MAX,
    ROWS_MAX,
    Range,
    a1,
    column_letters,
    column_number,
    parse_a1,
)

rows = st.integers(1, ROWS_MAX)
columns = st.integers(1, COLUMNS_MAX)


@given(columns)
def test_letters_name_a_column_and_lead_back_to_it(column: int) -> None:
    assert column_number(column_letters(column)) == column


@pytest.mark.parametrize(
    ("column", "letters"), [(1, "A"), (26, "Z"), (27, "AA"), (703, "AAA"), (COLUMNS_MAX, "XFD")]
)
def test_letters_are_those_that_spreadsheets_show(column: int, letters: str) -> None:
    assert column_letters(column) == letters


@given(rows, columns)
def test_a_name_of_a_cell_leads_back_to_it(row: int, column: int) -> None:
    assert parse_a1(a1(row, column)) == (row, column)


@pytest.mark.parametrize("name", ["", "A", "1", "A0", "XFE1", "A1048577", "AAAA1", "A1:B2", "Ä1"])
def test_what_names_no_cell_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse_a1(name)


@given(rows, columns, rows, columns)
def test_a_range_is_read_from_any_two_corners(top: int, left: int, bottom: int, right: int) -> None:
    found = Range.parse(f"{a1(top, left)}:{a1(bottom, right)}")
    assert (found.first_row, found.last_row) == (min(top, bottom), max(top, bottom))
    assert (found.first_column, found.last_column) == (min(left, right), max(left, right))
    assert Range.parse(str(found)) == found
