"""A preview shows the first rows of a sheet."""

import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from ade_engine.channel import Channel
from ade_engine.entry.preview import CELL_CHARACTERS_MAX, COLUMNS_MAX, main
from ade_engine.sheets.workbook import open_workbook


def preview(path: Path, rows: int = 20, sheet: str | None = None) -> dict[str, Any]:
    """Preview a file, with a round trip through JSON."""
    shown = main({"input": str(path), "rows": rows, "sheet": sheet}, Channel(io.StringIO()))
    back: dict[str, Any] = json.loads(json.dumps(shown, allow_nan=False))
    return back


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Write a workbook with three sheets, the first one hidden."""
    made = openpyxl.Workbook()
    hidden = made.active
    hidden.title, hidden.sheet_state = "Secret", "hidden"
    shown = made.create_sheet("Data")
    shown["B2"], shown["C2"] = "name", "when"
    shown["B4"], shown["C4"], shown["D4"] = "Ann", dt.date(2024, 2, 29), 1.5
    shown["B5"], shown["C5"], shown["D5"] = True, dt.time(7, 30), "#REF!"
    shown["D5"].data_type = "e"
    many = made.create_sheet("2")
    for number in range(1, 5001):
        many.append([number])
    path = tmp_path / "book.xlsx"
    made.save(path)
    return path


def test_the_first_sheet_that_is_not_hidden_is_shown(book: Path) -> None:
    shown = preview(book)
    assert shown["format"] == "xlsx"
    assert shown["sheets"] == [
        {"name": "Secret", "hidden": True},
        {"name": "Data", "hidden": False},
        {"name": "2", "hidden": False},
    ]
    assert (shown["sheet"], shown["columns"]) == ("Data", ["A", "B", "C", "D"])
    assert shown["rows"] == [
        [None, None, None, None],
        [None, "name", "when", None],
        [None, None, None, None],
        [None, "Ann", "2024-02-29", 1.5],
        [None, True, "07:30:00", "#REF!"],
    ]
    assert (shown["more_rows"], shown["cut"]) == (False, False)


def test_a_sheet_is_chosen_by_name_before_number(book: Path) -> None:
    assert preview(book, sheet="2")["rows"][:2] == [[1], [2]]
    assert preview(book, sheet="1")["sheet"] == "Secret"
    for missing in ("0", "4", "-1", "", "data", "9" * 30, "²"):
        assert preview(book, sheet=missing)["error"]["code"] == "no_such_sheet"


def test_only_as_many_rows_as_asked_for(book: Path) -> None:
    shown = preview(book, rows=3, sheet="2")
    assert shown["rows"] == [[1], [2], [3]]
    assert shown["more_rows"]
    assert preview(book, rows=1)["rows"] == []


def test_what_is_wide_or_long_is_cut_and_says_so(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(["x"] * (COLUMNS_MAX + 1)) + "\n")
    shown = preview(wide)
    assert (len(shown["columns"]), shown["cut"]) == (COLUMNS_MAX, True)
    long = tmp_path / "long.csv"
    long.write_text(f"{'y' * 5000},b\n" * 3)
    assert len(preview(long)["rows"][0][0]) == CELL_CHARACTERS_MAX + 1
    full = tmp_path / "full.csv"
    full.write_text((",".join(["z" * 200] * 100) + "\n") * 200)
    shown = preview(full, rows=200)
    assert shown["cut"]
    assert 0 < len(shown["rows"]) < 200
    assert len(json.dumps(shown)) < 1024 * 1024


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    for content, code in ((b"", "empty_file"), (b"PK\3\4" + b"x" * 100, "damaged_file")):
        file = tmp_path / "file"
        file.write_bytes(content)
        shown = preview(file)
        assert shown["error"]["code"] == code
        assert str(tmp_path) not in shown["error"]["message"]


def test_the_rest_of_a_sheet_is_not_read(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_workbook(book) as opened:
        sheet = opened.sheets[2]
        first = sheet.head(10)
        assert first[0].first_row == 1
        assert sheet.scan().height == 5000
        again = sheet.head(10)  # from the cells that were parsed already
        assert [b.rows(1, 10) for b in again] == [b.rows(1, 10) for b in first]
