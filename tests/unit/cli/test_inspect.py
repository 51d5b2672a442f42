"""`ade inspect`: what it prints, for programs and for people, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart
from typer.testing import CliRunner

from ade.cli import app
from ade.cli.exit_codes import ExitCode

CSV = (
    "Accounts of the branch,,\n"
    "\n"
    "Name,Town,Amount\n"
    + "".join(f"Person {n},Oslo,{n * 12.5}\n" for n in range(1, 11))
    + "Total,,687.5\n"
)


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    path = tmp_path / "accounts.csv"
    path.write_text(CSV)
    return path


def lines(*words: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["inspect", "--json", *words])
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_line_of_json_tells_what_is_seen(accounts: Path) -> None:
    (report,) = lines(str(accounts))
    assert (report["file"], report["format"], report["error"]) == (str(accounts), "csv", None)
    (sheet,) = report["sheets"]
    (table,) = sheet["tables"]
    assert sheet["rows"] == 14
    assert table["range"] == "A3:C14"
    assert table["header_rows"] == [3]
    assert table["header"] == ["Name", "Town", "Amount"]
    assert table["data_range"] == "A4:C13"
    assert table["data_rows"] == 10
    rows = {kind: found["ranges"] for kind, found in table["skipped"].items()}
    assert rows == {"preamble": ["1"], "total": ["14"], "blank": ["2"]}
    assert 0.5 < table["confidence"] <= 1
    assert {"rule", "delta"} == set(table["why"][0])


def test_no_data_cell_is_in_the_json(accounts: Path) -> None:
    text = json.dumps(lines(str(accounts)))
    assert "Person" not in text
    assert "Oslo" not in text


def test_sheets_that_are_not_read_are_named(tmp_path: Path) -> None:
    book = Workbook()
    for row in (["Name", "Town"], ["Ada", "Bern"], ["Ben", "Basel"]):
        book.active.append(row)
    book.create_chartsheet("Picture").add_chart(BarChart())
    path = tmp_path / "book.xlsx"
    book.save(path)
    (line,) = lines(str(path))
    assert line["unread_sheets"] == {
        "count": 1,
        "sheets": [{"name": "Picture", "reason": "chart"}],
    }
    shown = CliRunner().invoke(app, ["inspect", str(path)])
    assert "not read: 1 sheet (1 chart): 'Picture'" in shown.output


def test_a_broken_file_has_its_error_and_the_others_go_on(accounts: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK\x03\x04 and nothing that follows")
    missing = tmp_path / "missing.xlsx"
    result = CliRunner().invoke(
        app, ["inspect", "--json", str(broken), str(missing), str(accounts)]
    )
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == ExitCode.OK
    assert first["error"]["code"] in {"damaged_file", "unknown_format"}
    assert second["error"]["code"] == "unreadable_file"
    assert {"code", "message", "advice"} == set(first["error"])
    assert first["sheets"] == []
    assert third["error"] is None


def test_it_fails_when_no_file_can_be_read(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "missing.csv")])
    assert result.exit_code == ExitCode.JOB_FAILED
    assert "unreadable_file" in result.stdout
    assert "Traceback" not in result.output


def test_an_unexpected_failure_is_an_error_of_its_file(
    accounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(sheet: object) -> None:
        raise RuntimeError("Person 3 lives in Oslo")

    monkeypatch.setattr("ade_engine.inspection.find_tables", breaks)
    (report,) = lines(str(accounts))
    assert report["error"]["code"] == "engine_error"
    assert "RuntimeError" in report["error"]["message"]
    assert "Oslo" not in json.dumps(report)


def test_nothing_to_inspect_is_wrong_usage() -> None:
    assert CliRunner().invoke(app, ["inspect"]).exit_code == ExitCode.USAGE


def test_the_picture_shows_rows_with_their_kinds(
    accounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    text = CliRunner().invoke(app, ["inspect", str(accounts)]).stdout
    assert "\x1b[" not in text
    assert "table 1: A3:C14, header row 3, 10 data rows, confidence" in text
    assert "why: " in text
    shown = {
        line.split()[0]: line.split()[1] for line in text.splitlines() if line[:3].strip().isdigit()
    }
    assert shown == {
        "1": "preamble",
        "2": "blank",
        "3": "header",
        "4": "data",
        "5": "data",
        "6": "data",
        "7": "data",
        "14": "total",
    }
    assert "data (7 rows)" in text


def test_a_cell_that_looks_like_markup_is_drawn_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "[red]odd.csv"
    path.write_text("a,b\n[/],[bold]x\n1,2\n3,4\n")
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == ExitCode.OK
    assert "[/]" in result.stdout
