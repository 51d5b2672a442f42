"""Row detectors of a config package complement the default model."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.tables.sheets import HEADER, MadeSheet, people

from ade_engine.sheets.cells import CellKind
from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import RowKind
from ade_engine.tables.row_detectors import RowScorer, SheetRow, SheetRows
from ade_engine.tables.spans import RowSpans


def test_a_rule_makes_rows_of_a_type_of_its_own() -> None:
    def marks_inactive(row: SheetRow) -> float:
        return 1.0 if "inactive" in row.texts else 0.0

    data = people(12)
    data[4][1] = data[9][1] = "inactive"
    rule = RowScorer("inactive", "row.inactive.word", marks_inactive)
    (table,) = find_tables(MadeSheet([HEADER, *data]), [rule]).tables
    assert table.skipped["inactive"] == RowSpans([(6, 6), (11, 11)])
    assert table.data_rows.count == 10


def test_a_rule_reaches_rows_in_the_middle_of_a_long_table() -> None:
    data = people(5000)
    data[2500][1] = "inactive"
    rule = RowScorer("inactive", "row.inactive.word", lambda row: float("inactive" in row.texts))
    (table,) = find_tables(MadeSheet([HEADER, *data], block_rows=2048), [rule]).tables
    assert table.skipped["inactive"] == RowSpans([(2502, 2502)])
    assert table.data_rows.count == 4999


def test_a_rule_for_headers_decides_and_is_named_among_the_reasons() -> None:
    rows: list[Any] = [
        ["Ann", "Lee", "Oslo"],
        ["Bob", "Fox", "Rome"],
        ["given", "family", "home"],
        ["Cid", "Orr", "Lima"],
        ["Dee", "Poe", "Riga"],
    ]
    rule = RowScorer("header", "row.header.names", lambda row: float("family" in row.texts))
    tables = find_tables(MadeSheet(rows), [rule]).tables
    (found,) = [table for table in tables if table.header_rows]
    assert found.header_rows == (3,)
    assert ("row.header.names", 1.0) in [(one.rule, one.delta) for one in found.why]


def test_a_rule_may_speak_for_several_types_and_against_one() -> None:
    data = people(10)
    data.append(["Total", None, None, 300.5])
    keep = RowScorer(
        "data",
        "row.data.totals",
        lambda row: {"total": -1.0, "data": 0.5} if "Total" in row.texts else None,
    )
    (table,) = find_tables(MadeSheet([HEADER, *data]), [keep]).tables
    assert RowKind.TOTAL not in table.skipped
    assert table.data_rows.count == 11


def test_what_a_rule_raises_is_not_hidden() -> None:
    def breaks(row: SheetRow) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        find_tables(MadeSheet([HEADER, *people(3)]), [RowScorer("note", "row.note.x", breaks)])


def test_a_row_sees_itself_and_its_neighbours() -> None:
    sheet = MadeSheet([["Title"], [], ["a", 1, "2,5", None], ["b", True]])
    row = SheetRows(sheet, 4).row(3)
    assert row is not None
    assert row.values == ("a", 1, "2,5", None)
    assert row.kinds == (CellKind.TEXT, CellKind.NUMBER, CellKind.TEXT, CellKind.EMPTY)
    assert (row.texts, row.filled, row.fill) == (("a", "2,5"), 3, 0.75)
    assert row.text_share == pytest.approx(1 / 3)
    assert row.number_share == pytest.approx(2 / 3)
    above, below = row.above(2), row.below()
    assert above is not None
    assert below is not None
    assert (above.number, above.texts) == (1, ("Title",))
    assert (below.number, below.values) == (4, ("b", True, None, None))
    assert row.above(3) is None
    assert row.below(2) is None
