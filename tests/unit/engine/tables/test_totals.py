"""Totals are rows that add up or that are called a total, never names that begin with "Total"."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.tables.sheets import HEADER, MadeSheet, people

from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import RowKind, SkipReason, TableRegion
from ade_engine.tables.totals import total_label

NAMES = ("Acme", "Bolt", "Core", "Dunn", "Echo", "Fink", "Gage", "Holt")
CUSTOMERS = ("Total Energies", "Grand Total Foods", "Totals & Sons", "Total", "Sum Ltd")


def only_table(rows: list[Any]) -> TableRegion:
    (table,) = find_tables(MadeSheet(rows)).tables
    return table


def skipped_totals(table: TableRegion) -> list[int]:
    spans = table.skipped.get(RowKind.TOTAL)
    return list(spans.rows()) if spans else []


@pytest.mark.parametrize("name", CUSTOMERS)
@pytest.mark.parametrize("place", [0, 3, 8])
def test_a_customer_called_total_is_data(name: str, place: int) -> None:
    rows: list[Any] = [[one, "Bern", 100 + n, 37.5 * n + 40] for n, one in enumerate(NAMES)]
    rows.insert(place, [name, "Oslo", 99, 61.25])
    assert only_table([HEADER, *rows]).data_rows.count == 9


@pytest.mark.parametrize("name", CUSTOMERS)
@pytest.mark.parametrize("place", [3, 8])
def test_a_customer_called_total_is_data_without_other_texts(name: str, place: int) -> None:
    rows: list[Any] = [[one, 1200.5 + 310 * n] for n, one in enumerate(NAMES)]
    rows.insert(place, [name, 961.25])
    assert only_table([["Customer", "Turnover"], *rows]).data_rows.count == 9


def test_a_customer_called_total_is_data_in_a_long_table() -> None:
    data = people(30_000)
    for place in range(5, 30_000, 6):
        data[place][0] = "Total Energies"
    for place in range(7, 30_000, 60):
        data[place][0] = "Total"
    (table,) = find_tables(MadeSheet([HEADER, *data], block_rows=8192)).tables
    assert table.data_rows.count == 30_000


@pytest.mark.parametrize("label", ["Total", "Grand total", "TOTAL:", "Total 2019", "Summe"])
def test_a_row_called_total_is_skipped_with_its_reason(label: str) -> None:
    data = people(9)
    total = [label, None, None, round(sum(row[3] for row in data), 2)]
    table = only_table([HEADER, *data, total])
    assert skipped_totals(table) == [11]
    assert 11 in table.reasons[SkipReason.ADDS_UP]


def test_a_total_over_rows_that_are_not_shown_is_skipped_by_its_label() -> None:
    table = only_table([HEADER, *people(9), ["Total", None, None, 99_999.0]])
    assert skipped_totals(table) == [11]
    assert 11 in table.reasons[SkipReason.SAYS_TOTAL]


def test_totals_of_groups_and_the_sum_of_these_are_skipped() -> None:
    north, south = people(5), people(6, 10)
    sums = [round(sum(row[3] for row in part), 2) for part in (north, south)]
    rows = [
        *north,
        ["North Total", None, None, sums[0]],
        *south,
        ["South Total", None, None, sums[1]],
        ["Grand Total", None, None, sum(sums)],
    ]
    table = only_table([HEADER, *rows])
    assert skipped_totals(table) == [7, 14, 15]
    assert table.data_rows.count == 11


def test_a_label_is_a_total_word_and_its_qualifiers() -> None:
    for text in ("Total", "Sub-total:", "Total (EUR)", "Gesamtsumme", "Average", "Total Q1 2020"):
        label = total_label(text)
        assert label is not None, text
        assert label.is_whole, text
    for text in ("Total Energies", "North Total", "Grand Total Foods", "Total for North"):
        label = total_label(text)
        assert label is not None, text
        assert not label.is_whole, text
    for text in ("Totality", "Sumatra", "Meaning", "Allsum", "Subtotaled"):
        assert total_label(text) is None, text
