"""What follows the data is not data, and every row that is left out has a reason."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.tables.sheets import HEADER, MadeSheet, people

from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import RowKind, SkipReason, TableRegion

BLANK: list[Any] = []

AFTER_DATA: dict[str, list[Any]] = {
    "a note": [["Note: amounts are in thousands of crowns."]],
    "a note after a blank row": [BLANK, ["* estimated by the branch"]],
    "a page footer": [["Page 1 of 3"]],
    "a signature": [BLANK, ["Signed:", None, None, "B. Lind"]],
    "a signature line": [BLANK, ["Prepared by", "Bo Lind"], ["Date", "3 May 2024"]],
    "a signature on the right": [BLANK, [None, None, "Approved", "B. Lind"]],
    "net, VAT and gross": [
        [None, None, "Net", 1000.5],
        [None, None, "VAT 20%", 200.1],
        [None, None, "Gross", 1200.6],
    ],
    "VAT after a total": [
        ["Total", None, None, 99_999.0],
        ["VAT 20%", None, None, 19_999.8],
        ["Payable", None, None, 119_998.8],
    ],
    "a small table": [BLANK, ["Oslo", 12], ["Lima", 7], ["Riga", 9]],
    "a legend": [BLANK, ["p", "provisional"], ["e", "estimated"]],
}


def only_table(rows: list[Any]) -> TableRegion:
    (table,) = find_tables(MadeSheet(rows)).tables
    return table


@pytest.mark.parametrize("after", AFTER_DATA.values(), ids=AFTER_DATA)
def test_what_follows_the_data_is_left_out_with_a_reason(after: list[Any]) -> None:
    structure = find_tables(MadeSheet([HEADER, *people(12), *after]))
    table = structure.tables[0]
    assert list(table.data_rows) == [(2, 13)]
    for row in range(14, 14 + len(after)):
        if after[row - 14] and len(structure.tables) == 1:
            assert any(row in rows for rows in table.reasons.values())


def test_net_without_a_word_for_it_is_a_total_if_it_adds_up_everything() -> None:
    data = people(9)
    net = round(sum(row[3] for row in data), 2)
    rows = [["Net", None, None, net], ["Tax", None, None, 10.0], ["Due", None, None, net + 10]]
    table = only_table([HEADER, *data, *rows])
    assert list(table.data_rows) == [(2, 10)]
    assert 11 in table.reasons[SkipReason.ADDS_UP]
    assert 12 in table.reasons[SkipReason.AFTER_DATA]


def test_an_incomplete_last_record_is_data() -> None:
    table = only_table([HEADER, *people(12), ["Zoe Quist", None, None, 12.5]])
    assert table.data_rows.count == 13
    table = only_table([HEADER, *people(12), ["Zoe Quist", "Oslo", "unknown", "n/a"]])
    assert table.data_rows.count == 13


def test_an_incomplete_last_record_before_a_total_is_data() -> None:
    data = [*people(12), ["Taxi", None, None, 12.5]]
    total = ["Total", None, None, round(sum(row[3] for row in data), 2)]
    assert only_table([HEADER, *data, total]).data_rows.count == 13


def test_blank_rows_between_all_records_end_nothing() -> None:
    spaced = [row for one in people(9) for row in (one, BLANK)]
    table = only_table([HEADER, *spaced, ["Zoe Quist", None, None, 12.5]])
    assert table.data_rows.count == 10


def test_several_rows_of_values_after_the_data_are_for_a_person_to_check() -> None:
    table = only_table([HEADER, *people(12), BLANK, ["Oslo", 12], ["Lima", 7], ["Riga", 9]])
    assert table.needs_review


def test_every_row_that_is_left_out_has_one_reason() -> None:
    rows = [["Report"], BLANK, HEADER, *people(5), ["South"], *people(5), BLANK, HEADER, *people(3)]
    table = only_table([*rows, ["Total", None, None, 9999], ["Page 1 of 1"]])
    left_out = [row for spans in table.skipped.values() for row in spans.rows()]
    reasons = [row for spans in table.reasons.values() for row in spans.rows()]
    assert sorted(left_out) == sorted(reasons)
    assert RowKind.REPEATED_HEADER in table.skipped
    assert 16 in table.reasons[SkipReason.SAME_HEADER]
