"""Tables without a header are recognised, and nothing of a doubtful header is recorded."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.unit.engine.pipeline.workbooks import run
from tests.unit.engine.tables.layouts import COLUMNS, make_table
from tests.unit.engine.tables.sheets import HEADER, MadeSheet, people

from ade_engine.inspection import table_json
from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import Doubt, TableShape

RECOGNISED_MIN = 0.9
KINDS = [
    (first, *rest)
    for first in ("name", "item", "email", "code")
    for rest in combinations(("town", "date", "amount", "count", "share"), 2)
]


def headerless(kinds: tuple[str, ...], seed: int) -> list[list[Any]]:
    return make_table(Random(seed), columns=kinds, rows=14, header=False).rows


def test_rows_without_a_header_are_recognised() -> None:
    found = [find_tables(MadeSheet(headerless(kinds, 3))).tables[0] for kinds in KINDS]
    right = [table.shape is not TableShape.HEADED for table in found]
    assert sum(right) >= RECOGNISED_MIN * len(right)


@pytest.mark.parametrize("seed", range(3))
def test_no_value_of_rows_without_a_header_is_recorded(seed: int) -> None:
    leaked = []
    for kinds in KINDS:
        rows = headerless(kinds, seed)
        values = {str(cell) for row in rows for cell in row if isinstance(cell, str)}
        tables = find_tables(MadeSheet(rows)).tables
        written = json.dumps([table_json(table) for table in tables], ensure_ascii=False)
        leaked += [kinds for value in values if json.dumps(value, ensure_ascii=False) in written]
    assert len(set(leaked)) <= 0.05 * len(KINDS)


def test_a_header_above_the_same_rows_is_found() -> None:
    for kinds in KINDS:
        table = find_tables(MadeSheet(make_table(Random(5), columns=kinds, rows=14).rows)).tables[0]
        assert table.header == tuple(COLUMNS[kind][0] for kind in kinds)


def test_a_doubtful_header_is_masked_and_for_a_person_to_check() -> None:
    rows: list[Any] = [[name] for name in ("Moss", "Lind", "Park", "Vance", "Holt", "Ahn")]
    (table,) = find_tables(MadeSheet(rows)).tables
    assert Doubt.HEADER in table.doubts
    assert table.needs_review
    assert table.recorded_header == ("",)
    assert table_json(table)["header_masked"] is True
    assert "Moss" not in json.dumps(table_json(table))


def test_a_header_above_empty_columns_is_found_and_for_a_person_to_check() -> None:
    names: list[Any] = [[name] for name in ("Moss", "Lind", "Park", "Vance", "Holt", "Ahn")]
    (table,) = find_tables(MadeSheet([["Name", "Amount", "Price", "Town"], *names])).tables
    assert (table.header, table.data_rows.count) == (("Name", "Amount", "Price", "Town"), 6)
    assert Doubt.HEADER in table.doubts


def test_a_certain_header_is_recorded() -> None:
    (table,) = find_tables(MadeSheet([HEADER, *people(20)])).tables
    assert not table.needs_review
    assert table_json(table)["header"] == HEADER


def test_a_list_is_a_table() -> None:
    emails: list[Any] = [[f"{name}@example.com"] for name in ("ada", "bo", "cy", "di", "ed")]
    (table,) = find_tables(MadeSheet([["Email"], *emails])).tables
    assert (table.header, table.data_rows.count) == (("Email",), 5)
    (table,) = find_tables(MadeSheet([["Staff"], [], ["Number"], *[[n] for n in range(9)]])).tables
    assert (table.header, table.data_rows.count) == (("Number",), 9)


def test_a_form_has_no_header() -> None:
    form: list[Any] = [
        ["Owner", "Moss Ltd"],
        ["Station", "North"],
        ["Capacity", 1354],
        ["Start", "2024-05-03"],
        ["State", "TX"],
        ["Plant", 1000057],
        ["Fuel", "gas"],
    ]
    (table,) = find_tables(MadeSheet(form)).tables
    assert table.shape is TableShape.KEY_VALUE
    assert table.data_rows.count == 7


def test_a_run_records_nothing_of_a_doubtful_header(tmp_path: Path) -> None:
    names = ("Moss", "Lind", "Park", "Vance", "Holt", "Ahn")
    run(tmp_path, [[name] for name in names], columns__name="FIELD = Field(type='text')")
    for written in ("artifact.json", "events.ndjson"):
        text = (tmp_path / "out" / written).read_text()
        assert not [name for name in names if name in text]


def test_the_unit_of_a_doubtful_header_is_not_recorded(tmp_path: Path) -> None:
    names = ("Moss USD", "Lind EUR", "Park USD", "Vance EUR")
    code = "FIELD = Field(type='text', synonyms=['moss'])"
    ran = run(tmp_path, [[name] for name in names], columns__name=code)
    (table,) = ran.stage("structure")[0]["tables"]
    assert table["doubts"] == ["header_uncertain"]
    (column,) = ran.stage("mapping")[0]["columns"]
    assert (column["target"], column["unit"]) == ("name", None)
