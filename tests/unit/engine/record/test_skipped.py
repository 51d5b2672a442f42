"""Whatever a run leaves out is counted by reason, with a bounded list of places."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from tests.unit.engine.pipeline.workbooks import Ran, run_on

from ade_engine.errors import EngineError, NoCells
from ade_engine.sheets.read_limits import ReadLimits, ReadOptions
from ade_engine.sheets.workbook import open_workbook

ID = "FIELD = Field(label='ID', type='text', required=True)\n"
AMOUNT = "FIELD = Field(label='Amount', type='number')\n"
FIELDS = {"columns__id": ID, "columns__amount": AMOUNT}
ROWS: list[list[Any]] = [["ID", "Amount", "Remark"], *([f"A{n}", n, f"r{n}"] for n in range(1, 9))]


def write_book(path: Path, change: Any = None) -> Path:
    book = Workbook()
    sheet = book.active
    for row in ROWS:
        sheet.append(row)
    if change is not None:
        change(book, sheet)
    book.save(path)
    return path


def counts(ran: Ran) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = ran.artifact["summary"]["skipped"]
    return {kind: reasons for kind, reasons in found.items() if reasons}


def test_a_run_that_leaves_out_only_columns_says_so(tmp_path: Path) -> None:
    ran = run_on(tmp_path, write_book(tmp_path / "in.xlsx"), **FIELDS)
    assert counts(ran) == {"columns": {"unmapped": 1}}
    (part,) = ran.artifact["skipped"]["parts"]
    assert part["ranges"] == ["C"]
    assert ran.summary["summary"]["skipped"] == ran.artifact["summary"]["skipped"]


def test_kept_columns_are_not_left_out(tmp_path: Path) -> None:
    source = write_book(tmp_path / "in.xlsx")
    ran = run_on(tmp_path, source, **FIELDS, config="[output]\nunmapped = 'keep'\n")
    assert counts(ran) == {}


def test_hidden_and_unchosen_sheets_and_charts_are_counted(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        for name in ("Hidden", "Other"):
            copy = book.create_sheet(name)
            for row in ROWS:
                copy.append(row)
        book["Hidden"].sheet_state = "hidden"
        chart = BarChart()
        chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=9))
        book.create_chartsheet("Picture").add_chart(chart)

    source = write_book(tmp_path / "in.xlsx", change)
    config = "[reading]\nsheets = ['Sheet']\n[output]\nunmapped = 'keep'\n"
    ran = run_on(tmp_path, source, **FIELDS, config=config)
    assert counts(ran) == {"sheets": {"chart": 1, "hidden": 1, "not_chosen": 1}}
    named = {part["sheet"]: part["reason"] for part in ran.artifact["skipped"]["parts"]}
    assert named == {"Picture": "chart", "Hidden": "hidden", "Other": "not_chosen"}


def test_sheets_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        for number in range(5):
            book.create_sheet(f"More {number}")

    source = write_book(tmp_path / "in.xlsx", change)
    with open_workbook(source, ReadOptions(limits=ReadLimits(sheets_max=2))) as book:
        assert len(book.sheets) == 2
        assert [sheet.reason for sheet in book.unread] == ["beyond_limit"] * 4
        assert book.unread[0].name == "More 1"


def test_a_thousand_and_ten_sheets_leave_ten_out(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        for number in range(1_120):
            book.create_sheet(f"S{number}")

    source = write_book(tmp_path / "in.xlsx", change)
    ran = run_on(tmp_path, source, **FIELDS, config="[output]\nunmapped = 'keep'\n")
    assert counts(ran) == {"sheets": {"beyond_limit": 121}}
    parts = ran.artifact["skipped"]["parts"]
    assert [part["count"] for part in parts] == [1] * 100 + [21]
    assert parts[-1]["sheet"] is None


def test_a_workbook_of_charts_is_not_called_damaged(tmp_path: Path) -> None:
    book = Workbook()
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=1, min_row=1, max_row=2))
    book.create_chartsheet("Picture").add_chart(chart)
    book.remove(book.worksheets[0])
    book.save(tmp_path / "in.xlsx")
    with pytest.raises(NoCells, match="only chart sheets"):
        open_workbook(tmp_path / "in.xlsx")


def test_hidden_rows_and_columns_are_counted(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        for row in (3, 4, 7):
            sheet.row_dimensions[row].hidden = True
        sheet.column_dimensions["C"].hidden = True

    source = write_book(tmp_path / "in.xlsx", change)
    config = "[reading]\nhidden_rows = false\nhidden_columns = false\n"
    ran = run_on(tmp_path, source, **FIELDS, config=config)
    assert counts(ran) == {"columns": {"hidden": 1}, "rows": {"hidden": 3}}
    rows = next(part for part in ran.artifact["skipped"]["parts"] if part["kind"] == "rows")
    assert (rows["ranges"], rows["sheet"], rows["table"]) == (["3:4", "7"], "Sheet", 1)


def test_a_table_without_fields_is_counted_with_its_rows(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        other = book.create_sheet("Other")
        for row in [["Colour", "Shape"], ["red", "round"], ["blue", "flat"], ["green", "round"]]:
            other.append(row)

    source = write_book(tmp_path / "in.xlsx", change)
    ran = run_on(tmp_path, source, **FIELDS, config="[output]\nunmapped = 'keep'\n")
    assert counts(ran) == {"tables": {"no_field": 1}, "rows": {"in_skipped_table": 3}}


def test_a_table_without_a_header_is_counted_as_such(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        other = book.create_sheet("Other")
        for number in range(1, 8):
            other.append([number * 1.5, dt.date(2024, 1, number), number])

    source = write_book(tmp_path / "in.xlsx", change)
    ran = run_on(tmp_path, source, **FIELDS, config="[output]\nunmapped = 'keep'\n")
    assert counts(ran)["tables"] == {"no_header": 1}
    lines = [[str(cell.value) for cell in row] for row in ran.book["Issues"]]
    (line,) = (line for line in lines if line[2] == "table: no_header")
    assert any("It has no header row" in text for text in line)


def test_a_table_without_any_required_field_is_counted(tmp_path: Path) -> None:
    def change(book: Any, sheet: Any) -> None:
        other = book.create_sheet("Other")
        for row in [["Amount", "Shape"], [1.5, "round"], [2.5, "flat"], [3.5, "round"]]:
            other.append(row)

    source = write_book(tmp_path / "in.xlsx", change)
    ran = run_on(tmp_path, source, **FIELDS, config="[output]\nunmapped = 'keep'\n")
    assert counts(ran)["tables"] == {"required_missing": 1}


def test_rows_are_counted_exactly_however_many_runs_they_form(tmp_path: Path) -> None:
    detector = "def detect_it(row): return 1 if 'drop me' in row.texts else 0"
    rows: list[list[Any]] = [["ID", "Amount", "Remark"]]
    rows += [[f"A{n}", n, "drop me" if n % 2 else "keep"] for n in range(600)]
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    files = {**FIELDS, "row_types__dropped": detector, "config": "[output]\nunmapped = 'keep'\n"}
    ran = run_on(tmp_path, tmp_path / "in.xlsx", **files)
    assert counts(ran) == {"rows": {"dropped": 300}}
    (part,) = ran.artifact["skipped"]["parts"]
    assert len(part["ranges"]) == 100
    assert part["ranges_omitted"] == 200


def test_a_failed_run_counts_what_was_left_out_before(tmp_path: Path) -> None:
    source = write_book(tmp_path / "in.xlsx")
    hook = "def run(): raise RuntimeError('boom')"
    with pytest.raises(EngineError):
        run_on(tmp_path, source, **FIELDS, hooks__on_table_written=hook)
    assert '"unmapped": 1' in (tmp_path / "out" / "artifact.json").read_text()
