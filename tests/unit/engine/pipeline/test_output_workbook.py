"""The workbook shows what is wrong where it is, and lists what it does not have."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from openpyxl.worksheet.worksheet import Worksheet
from tests.unit.engine.pipeline.workbooks import Ran, run, run_on, run_request, write_workbook

from ade_engine.entry.normalize import NormalizeRequest
from ade_engine.package.issues import Severity
from ade_engine.pipeline import issues_sheet, note_texts
from ade_engine.writing import sheet_writer, workbook_writer

NAME = "FIELD = Field(type='text', order=1, required=True, unique=True)\n"
AMOUNT = "FIELD = Field(type='number', order=2)\n"
PAID = "FIELD = Field(type='date', order=3)\n"
ROWS: list[list[Any]] = [
    ["Report of May", None, None, None],
    [None, None, None, None],
    ["Name", "Amount", "Paid", "Remark"],
    ["Ada", 1234.5, dt.date(2024, 5, 1), "x"],
    ["Ben", "many", dt.date(2024, 5, 2), "y"],
    [None, 7, "soon", "z"],
    ["Ada", 8, dt.date(2024, 5, 3), "z"],
]
FILES = {"columns__name": NAME, "columns__amount": AMOUNT, "columns__paid": PAID}
ERROR, WARNING = "FFFFC7CE", "FFFFEB9C"


def fill(sheet: Worksheet, cell: str) -> str | None:
    colour = sheet[cell].fill
    return str(colour.fgColor.rgb) if colour.patternType == "solid" else None


def note(sheet: Worksheet, cell: str) -> str:
    comment = sheet[cell].comment
    return comment.text if comment else ""


def issues_of(ran: Ran) -> list[list[Any]]:
    return [list(row) for row in ran.book["Issues"].iter_rows(min_row=2, values_only=True)]


def test_cells_with_issues_are_filled_and_have_notes(tmp_path: Path) -> None:
    sheet = run(tmp_path, ROWS, **FILES).book["Normalized"]
    assert [sheet.cell(1, column).value for column in (1, 2, 3)] == ["Name", "Amount", "Paid"]
    assert fill(sheet, "B3") == fill(sheet, "A4") == fill(sheet, "C4") == ERROR
    assert fill(sheet, "B2") is fill(sheet, "A2") is None
    assert note(sheet, "B3") == (
        "Error: The value is not a number. (invalid_type)\nInput Data!B5: “many”"
    )
    assert note(sheet, "A4") == (
        "Error: A required value is missing. (missing_value)\nInput Data!A6"
    )


def test_an_issue_that_needs_the_whole_table_fills_a_row_that_is_already_written(
    tmp_path: Path,
) -> None:
    sheet = run(tmp_path, ROWS, **FILES).book["Normalized"]
    assert sheet["A5"].value == "Ada"
    assert fill(sheet, "A5") == ERROR
    assert "also occurs in an earlier row" in note(sheet, "A5")


def test_the_issues_sheet_links_to_output_and_input(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, **FILES)
    book = ran.book
    assert book.sheetnames == ["Normalized", "Issues"]
    assert ran.stage("output")[0]["issues_sheet"] == "Issues"
    sheet = book["Issues"]
    assert [cell.value for cell in sheet[1]] == [
        "Severity", "Field", "Issue", "Message", "Count", "Output", "Input", "Rule",
    ]  # fmt: skip
    rows = {(row[2], row[5]): (number, row) for number, row in enumerate(issues_of(ran), 2)}
    number, row = rows["invalid_type", "Normalized!B3"]
    assert row[:2] == ["error", "Amount"]
    assert (row[4], row[6], row[7]) == (1, "Data!B5", "col.amount.type")
    output, source = sheet.cell(number, 6).hyperlink, sheet.cell(number, 7).hyperlink
    assert output.location == "'Normalized'!B3"
    assert (source.location, source.target) == ("'Data'!B5", "input.xlsx")


def test_the_issues_sheet_lists_what_was_left_out(tmp_path: Path) -> None:
    source = write_workbook(
        tmp_path / "in.xlsx", Data=[*ROWS, ["Total", 1249.5, None, None]], Other=[["x"], ["y"]]
    )
    config = "[reading]\nsheets = ['Data']\n"
    listed = issues_of(run_on(tmp_path, source, config=config, **FILES))
    left = {row[2]: (row[3], row[4], row[6]) for row in listed if row[0] == "left out"}
    assert left["rows: preamble"][1:] == (1, "Data!1:1")
    assert left["rows: total"] == ("Left out: total rows.", 1, "Data!8:8")
    assert left["sheet: not_chosen"][2] == "Other"
    assert left["column: no_signal"] == ("“Remark”: No field matches this column.", 1, "Data!D:D")


def test_links_stay_beside_the_workbook(tmp_path: Path) -> None:
    source = write_workbook(tmp_path / "in.xlsx", Data=ROWS)
    request = NormalizeRequest(
        source, tmp_path / "package", tmp_path / "out", input_name="\\\\host\\share\\../a b#1.xlsx"
    )
    sheet = run_request(tmp_path, request, FILES).book["Issues"]
    assert {cell.hyperlink.target for (cell,) in sheet["G2:G4"]} == {"a%20b%231.xlsx"}


def test_a_table_that_is_not_written_is_listed(tmp_path: Path) -> None:
    rows = [["Colour", "Size"], ["red", 1], ["blue", 2], ["green", 3]]
    (line,) = issues_of(run(tmp_path, rows, **FILES))
    assert (line[0], line[2], line[4]) == ("left out", "table: no_field", 3)
    assert "required fields: name" in line[3]


def test_a_workbook_without_issues_has_no_sheet_for_them(tmp_path: Path) -> None:
    rows = [["Name", "Amount"], ["Ada", 1], ["Ben", 2]]
    ran = run(tmp_path, rows, columns__name=NAME, columns__amount=AMOUNT)
    assert ran.book.sheetnames == ["Normalized"]
    assert ran.stage("output")[0]["issues_sheet"] is None


def test_a_note_never_shows_what_a_transform_may_hide(tmp_path: Path) -> None:
    hidden = AMOUNT + "def transform_column(column):\n    return column.map(lambda v: 'secret')\n"
    sheet = run(tmp_path, ROWS, **FILES | {"columns__amount": hidden}).book["Normalized"]
    assert "Data!B5" in note(sheet, "B3")
    assert "many" not in note(sheet, "B3")


@pytest.mark.parametrize(("setting", "found"), [("rules", "Input Data!B5"), ("off", "")])
def test_notes_can_name_the_rule_only_or_be_off(tmp_path: Path, setting: str, found: str) -> None:
    config = f"[output]\nnotes = '{setting}'\n"
    text = note(run(tmp_path, ROWS, config=config, **FILES).book["Normalized"], "B3")
    assert found in text
    assert "many" not in text
    assert bool(text) == (setting != "off")


def test_an_issue_of_the_whole_table_is_at_the_header(tmp_path: Path) -> None:
    checked = AMOUNT + (
        "def validate_table(column):\n"
        "    return Issue('too_few', 'warning', 'There are too few rows.')\n"
    )
    ran = run(tmp_path, ROWS, **FILES | {"columns__amount": checked})
    sheet = ran.book["Normalized"]
    assert fill(sheet, "B1") == WARNING
    assert note(sheet, "B1") == "Warning: There are too few rows. (too_few)"
    (line,) = (row for row in issues_of(ran) if row[2] == "too_few")
    assert (line[5], line[6]) == ("Normalized!B1", "Data!A3:D7")


def test_formats_widths_filter_and_properties(tmp_path: Path) -> None:
    money = "FIELD = Field(type='number', order=2, currency='EUR')\n"
    day = "FIELD = Field(type='date', order=3, format='dd.mm.yyyy')\n"
    count = "FIELD = Field(type='integer', order=4, label='Remark')\n"
    rows: list[list[Any]] = [["Name", "Amount", "Paid", "Remark"]]
    rows += [[f"Person number {n}", 1e6 + n / 10, dt.date(2024, 5, 1), n] for n in range(1, 30)]
    files = {"columns__amount": money, "columns__paid": day, "columns__remark": count}
    book = run(tmp_path, rows, **FILES | files, config="name = 'pay'\n").book
    sheet = book["Normalized"]
    assert sheet["B2"].number_format == "#,##0.00\\ [$EUR]"
    assert sheet["C2"].number_format == "dd.mm.yyyy"
    assert sheet["D2"].number_format == "0"
    assert sheet.column_dimensions["A"].width >= len("Person number 29")
    assert sheet.column_dimensions["B"].width >= len("1,000,002.90 EUR")
    assert sheet.auto_filter.ref == "A1:D30"
    assert sheet.freeze_panes == "A2"
    assert sheet["A1"].font.b
    assert (book.properties.subject, book.properties.creator) == ("pay", "ADE")
    assert book.properties.title == "input.xlsx, normalized"


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ([1, 2], "#,##0"),
        ([1.5, 2], "#,##0.00"),
        ([1.25, 0.1], "#,##0.00"),
        ([1.2345, 2], "#,##0.0000"),
        ([1 / 3, 2], "General"),
    ],
)
def test_numbers_show_as_many_decimals_as_the_column_has(
    tmp_path: Path, numbers: list[float], shown: str
) -> None:
    rows = [["Name", "Amount"], *([f"n{at}", number] for at, number in enumerate(numbers))]
    sheet = run(tmp_path, rows, columns__name=NAME, columns__amount=AMOUNT).book["Normalized"]
    assert sheet["B2"].number_format == shown


def test_source_columns_name_sheet_and_row(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, config="[output]\nsource = true\n", **FILES)
    (rows,) = ran.output.values()
    assert rows[0][-2:] == ["Source sheet", "Source row"]
    assert [row[-2:] for row in rows[1:]] == [["Data", number] for number in (4, 5, 6, 7)]


def test_issues_of_stacked_tables_name_their_own_places(tmp_path: Path) -> None:
    tables = {
        "One": [["Name", "Amount"], ["a", 1], ["b", "x"]],
        "Two": [["Name", "Amount"], ["c", "y"], ["d", 2]],
    }
    ran = run_on(tmp_path, write_workbook(tmp_path / "in.xlsx", **tables), **FILES)
    found = {row[5]: row[6] for row in issues_of(ran) if row[2] == "invalid_type"}
    assert found == {"Normalized!B3": "One!B3", "Normalized!B4": "Two!B2"}
    sheet = ran.book["Normalized"]
    assert fill(sheet, "B3") == fill(sheet, "B4") == ERROR


def test_limits_are_told_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_texts, "NOTES_MAX", 3)
    monkeypatch.setattr(issues_sheet, "LINES_MAX", 6)
    monkeypatch.setattr(sheet_writer, "LATE_FILLS_MAX", 3)  # one is for the doubtful header
    same = [["same", n] if n % 2 else [f"n{n}", "wrong"] for n in range(40)]
    ran = run(tmp_path, [["Name", "Amount"], *same], **FILES)
    sheet = ran.book["Normalized"]
    assert sum(1 for row in sheet.iter_rows() for cell in row if cell.comment) == 3
    late = [cell for (cell,) in sheet["A2:A41"] if cell.fill.patternType == "solid"]
    assert len(late) == 2
    lines = issues_of(ran)
    assert len(lines) == 6
    assert lines[-1][2] == "list_is_full"
    assert lines[-1][4] > 30


def test_issues_in_a_sheet_that_continues_name_the_right_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook_writer, "ROWS_MAX", 4)
    values: list[Any] = [1, 2, "early", 4, "late", 6, 7]
    rows = [["Name", "Amount"], *([f"n{at}", value] for at, value in enumerate(values))]
    ran = run(tmp_path, rows, **FILES)
    book = ran.book
    assert book.sheetnames == ["Normalized", "Normalized (2)", "Normalized (3)", "Issues"]
    found = {row[5]: row[6] for row in issues_of(ran) if row[2] == "invalid_type"}
    assert found == {"Normalized!B4": "Data!B4", "Normalized (2)!B3": "Data!B6"}
    assert fill(book["Normalized"], "B4") == fill(book["Normalized (2)"], "B3") == ERROR
    assert ran.stage("output")[0]["sheets"][0]["goes_on_in"] == book.sheetnames[1:3]


def test_notes_that_have_no_room_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_texts, "NOTES_MAX", 3)
    rows = [["Name", "Amount"], *([f"n{n}", "wrong"] for n in range(10))]
    lines = {row[2]: row for row in issues_of(run(tmp_path, rows, **FILES))}
    assert lines["notes_omitted"][3] == "7 further cells with issues have no note."
    assert lines["invalid_type"][4] == 10
    assert lines["invalid_type"][5] == "Normalized!B2:B11"


def test_the_highest_severity_decides_the_fill(tmp_path: Path) -> None:
    checked = AMOUNT + (
        "def validate_column(column):\n"
        f"    return column.issues_where(column.is_text(), 'odd', '{Severity.INFO}', 'Odd.')\n"
    )
    sheet = run(tmp_path, ROWS, **FILES | {"columns__amount": checked}).book["Normalized"]
    assert fill(sheet, "B3") == ERROR
    assert note(sheet, "B3").count("Input Data!B5") == 2
