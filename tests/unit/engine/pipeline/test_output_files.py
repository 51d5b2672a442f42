"""CSV, Parquet and JSON lines hold the rows of the workbook, with types that do not change."""

import csv
import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.engine.pipeline.workbooks import Ran, run, run_on, write_workbook

from ade_engine.errors import EngineError

FILES = {
    "columns__name": "FIELD = Field(type='text', order=1, required=True, label='Full name')\n",
    "columns__amount": "FIELD = Field(type='number', order=2, currency='EUR')\n",
    "columns__count": "FIELD = Field(type='integer', order=3, allowed=[1, 2])\n",
    "columns__paid": "FIELD = Field(type='date', order=4)\n",
    "columns__active": "FIELD = Field(type='boolean', order=5)\n",
    "columns__other": "FIELD = Field(order=6)\n",
}
ALL = "[output]\noutputs = ['xlsx', 'csv', 'parquet', 'jsonl']\n"
HEADER = ["Full name", "Amount", "Count", "Paid", "Active", "Other"]
DAY = dt.date(2024, 5, 1)
ROWS: list[list[Any]] = [
    HEADER,
    ["Ada, B.", 1.5, 1, DAY, True, 7],
    ['"quoted"', "many", 2, DAY, False, "text"],
    ["two\nlines", None, 1.5, "soon", None, DAY],
]


def csv_of(ran: Ran, name: str = "normalized.csv") -> list[list[str]]:
    with (ran.folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def csv_file(
    folder: Path, *rows: Sequence[object], header: Sequence[str] = ("Full name", "Amount")
) -> Path:
    path = folder / "input.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_all_formats_hold_the_same_rows(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, config=ALL, **FILES)
    frame = pl.read_parquet(ran.folder / "normalized.parquet")
    assert dict(frame.schema) == {
        "name": pl.String,
        "amount": pl.Float64,
        "count": pl.Int64,
        "paid": pl.Date,
        "active": pl.Boolean,
        "other": pl.String,
    }
    assert frame.rows() == [
        ("Ada, B.", 1.5, 1, DAY, True, "7"),
        ('"quoted"', None, 2, DAY, False, "text"),
        ("two\nlines", None, None, None, None, "2024-05-01"),
    ]
    text = (ran.folder / "normalized.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [list(line.values())[:3] for line in lines] == [list(row[:3]) for row in frame.rows()]
    assert lines[0]["paid"] == "2024-05-01"
    assert csv_of(ran) == [
        ["name", "amount", "count", "paid", "active", "other"],
        ["Ada, B.", "1.5", "1", "2024-05-01", "true", "7"],
        ['"quoted"', "many", "2", "2024-05-01", "false", "text"],
        ["two\nlines", "", "1.5", "soon", "", "2024-05-01"],
    ]
    assert (ran.folder / "normalized.csv").read_bytes().count(b"\r\n") == 4


def test_the_artifact_names_the_files_and_counts_what_they_lack(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, config=ALL, **FILES)
    (output,) = ran.stage("output")
    assert output["files"] == [
        {"path": "normalized.csv", "format": "csv", "rows": 3, "texts_quoted": 0},
        {"path": "normalized.parquet", "format": "parquet", "rows": 3, "cells_emptied": 3},
        {"path": "normalized.jsonl", "format": "jsonl", "rows": 3, "cells_emptied": 3},
        {"path": "normalized.schema.json", "format": "table_schema"},
        {"path": "issues.csv", "format": "issues"},
    ]
    assert not [path for path in ran.folder.iterdir() if path.name.startswith(".")]
    issues = csv_of(ran, "issues.csv")
    assert ["error", "Amount", "invalid_type", "The value is not a number.", "1"] in [
        row[:5] for row in issues
    ]
    assert "Normalized!B3" in [row[5] for row in issues]


def test_the_table_schema_describes_the_columns(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, config=ALL, **FILES)
    schema = json.loads((ran.folder / "normalized.schema.json").read_text(encoding="utf-8"))
    fields = {field["name"]: field for field in schema["fields"]}
    assert fields["name"]["title"] == "Full name"
    assert fields["name"]["constraints"] == {"required": True}
    assert (fields["amount"]["type"], fields["amount"]["currency"]) == ("number", "EUR")
    assert (fields["count"]["type"], fields["count"]["constraints"]) == (
        "integer",
        {"enum": [1, 2]},
    )
    assert fields["paid"]["type"] == "date"
    assert fields["active"]["type"] == "boolean"
    assert fields["other"]["type"] == "string"
    assert schema["missingValues"] == [""]


def test_one_time_of_day_makes_a_column_of_dates_one_of_moments(tmp_path: Path) -> None:
    rows = [["Full name", "Paid"], *([f"n{at}", DAY] for at in range(20))]
    rows.append(["last", dt.datetime(2024, 5, 1, 13, 5)])  # noqa: DTZ001
    ran = run(tmp_path, rows, config=ALL, **FILES)
    assert pl.read_parquet(ran.folder / "normalized.parquet").schema["paid"] == pl.Datetime("ms")
    written = [row[3] for row in csv_of(ran)[1:]]
    assert (written[0], written[-1]) == ("2024-05-01T00:00:00", "2024-05-01T13:05:00")
    schema = json.loads((ran.folder / "normalized.schema.json").read_text(encoding="utf-8"))
    assert schema["fields"][3]["type"] == "datetime"
    assert schema["fields"][3]["format"] == "%Y-%m-%dT%H:%M:%S"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("=1+1", True),
        ("@SUM(A1)", True),
        ("+cmd|' /C calc'!A0", True),
        ("-1\n=cmd|' /C calc'!A0", True),
        ("+49 (30) 12-34", False),
        ("-5", False),
        ("a=b", False),
    ],
)
def test_a_text_that_may_be_a_formula_is_quoted_in_csv(
    tmp_path: Path, text: str, quoted: bool
) -> None:
    source = csv_file(tmp_path, ["Ada", 1], [text, 2], ["Ben", 3])
    ran = run_on(tmp_path, source, config=ALL, **FILES)
    assert csv_of(ran)[2][0] == ("'" if quoted else "") + text
    assert pl.read_parquet(ran.folder / "normalized.parquet")["name"][1] == text
    assert ran.stage("output")[0]["files"][0]["texts_quoted"] == int(quoted)


def test_formulas_can_be_kept_and_negative_numbers_always_are(tmp_path: Path) -> None:
    config = ALL + "csv_formulas = 'keep'\n"
    ran = run_on(tmp_path, csv_file(tmp_path, ["=A1", -5], ["Ben", 3]), config=config, **FILES)
    assert csv_of(ran)[1][:2] == ["=A1", "-5.0"]


def test_the_name_of_a_column_that_is_kept_is_never_a_formula(tmp_path: Path) -> None:
    rows = [["Ada", 1, "x"], ["Ben", 2, "y"]]
    source = csv_file(tmp_path, *rows, header=["Full name", "Amount", "=cmd|x"])
    ran = run_on(tmp_path, source, config=ALL + "unmapped = 'keep'\n", **FILES)
    assert csv_of(ran)[0][-1] == "'=cmd|x"


def test_without_xlsx_there_is_no_workbook_but_issues_are_listed(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, config="[output]\noutputs = ['parquet']\n", **FILES)
    assert {path.name for path in ran.folder.iterdir()} == {
        "normalized.parquet",
        "normalized.schema.json",
        "issues.csv",
        "artifact.json",
        "events.ndjson",
    }
    assert ran.summary["files"][0] == "normalized.parquet"
    assert "Normalized!B3" in [row[5] for row in csv_of(ran, "issues.csv")]


def test_each_sheet_has_its_own_files(tmp_path: Path) -> None:
    tables = {name: [["Full name", "Amount"], [name, 1], ["x", 2]] for name in ("One", "Two")}
    source = write_workbook(tmp_path / "in.xlsx", **tables)
    ran = run_on(tmp_path, source, config=ALL + "tables = 'sheets'\nsource = true\n", **FILES)
    assert csv_of(ran)[1][0] == "One"
    second = csv_of(ran, "normalized-2.csv")
    assert second[0][-2:] == ["source_sheet", "source_row"]
    assert (second[1][0], second[1][-2:]) == ("Two", ["Two", "2"])
    assert (ran.folder / "normalized-2.schema.json").exists()


def test_a_file_without_rows_has_its_header(tmp_path: Path) -> None:
    ran = run(tmp_path, [["Colour", "Size"], ["red", 1], ["blue", 2]], config=ALL, **FILES)
    assert csv_of(ran) == [["name", "amount", "count", "paid", "active", "other"]]
    assert pl.read_parquet(ran.folder / "normalized.parquet").height == 0


def test_a_run_that_fails_leaves_no_rows(tmp_path: Path) -> None:
    fails = "def on_job_end(summary):\n    raise ValueError\n"
    with pytest.raises(EngineError):
        run(tmp_path, ROWS, config=ALL, hooks__on_job_end=fails, **FILES)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "artifact.json",
        "events.ndjson",
    }


@pytest.mark.parametrize("outputs", ["'csv'", "[]", "['pdf']"])
def test_only_known_formats_are_taken(tmp_path: Path, outputs: str) -> None:
    with pytest.raises(EngineError, match="xlsx, csv, parquet, jsonl"):
        run(tmp_path, ROWS, config=f"[output]\noutputs = {outputs}\n", **FILES)
