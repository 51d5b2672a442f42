"""No value of a data cell gets into artifact, events, logs or errors, whatever a package does.

Every cell of the input holds a text or a number that occurs nowhere else. A package then tries to
leak them, in one way at a time.
"""

import logging
import traceback
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.pipeline.workbooks import run_on, run_request, write_workbook

from ade_engine.entry.normalize import NormalizeRequest
from ade_engine.errors import EngineError

ROWS = 12
BASE = "FIELD = Field(label='Name', type='text')\n"
NUMBER = "FIELD = Field(label='Amount', type='number')\n"

HOSTILE = {
    "raises the value": "def transform(value): raise ValueError(value)",
    "raises a type named as the value": "def transform(value): raise type(value, (Exception,), {})",
    "renames a type": (
        "class Mine(Exception): pass\n"
        "def transform(value):\n    Mine.__name__ = Mine.__qualname__ = value\n    raise Mine"
    ),
    "raises from the value": (
        "def transform(value):\n"
        "    try: raise KeyError(value)\n"
        "    except KeyError as error: raise ValueError(value) from error"
    ),
    "adds notes": (
        "def transform(value):\n    it = ValueError()\n    it.add_note(value)\n    raise it"
    ),
    "asserts": "def transform(value): assert value == 1, value",
    "exits": "import sys\ndef transform(value): sys.exit(value)",
    "imports the value": "import importlib\ndef transform(value): importlib.import_module(value)",
    "asks for an attribute": "def transform(value): return getattr(value, value)",
    "looks the value up": "def transform(value): return {}[value]",
    "evaluates the value": "def transform(value): return eval(value)",
    "compiles the value": "def transform(value): return compile('0' + value, value, 'exec')",
    "runs code of that name": (
        "def transform(value): exec(compile('raise ValueError', value, 'exec'))"
    ),
    "gives back a thing that shows it": (
        "class Box:\n    def __init__(self, v): self.v = v\n    def __repr__(self): return self.v\n"
        "def transform(value): return Box(value)"
    ),
    "raises for a row": "def transform(value, row): raise KeyError(dict(row))",
    "raises for a column": "def transform_column(column): raise ValueError(column.values)",
    "breaks in polars": (
        "import polars as pl\n"
        "def transform_column(column): return column.to_polars().cast(pl.Int64)"
    ),
    "gives back too little": "def transform_column(column): return column.values[:1]",
    "gives back things": "def transform_column(column): return [object() for _ in column]",
    "puts it into a message": "def validate(value): return Issue('bad', 'error', f'bad: {value}')",
    "puts it into a code": "def validate(value): return Issue(value.lower())",
    "gives it back as a code": "def validate(value): return value.lower()",
    "gives it back as it is": "def validate(value): return value",
    "puts it into a severity": "def validate(value): return Issue('bad', value)",
    "gives back a list of it": "def validate(value): return [value]",
    "puts it into the message of many": (
        "def validate_column(column):\n"
        "    return column.issues_where(~column.is_empty(), 'bad', message=column.values[0])"
    ),
    "validates by raising": "def validate(value): raise ValueError(value)",
    "validates the table by raising": "def validate_table(column): raise ValueError(column.values)",
    "puts it into an issue of the table": (
        "def validate_table(column): return Issue('bad', 'info', column.values[0])"
    ),
    "asks the table for a field of that name": (
        "def validate_column(column, table): return table[column.values[0]]"
    ),
    "detects by raising": "def detect_it(column): raise ValueError(column.values)",
    "scores a field of that name": "def detect_it(column): return {column.values[0]: 1}",
    "scores with it": "def detect_it(column): return column.values[0]",
    "changes its own labels": (
        "def transform(value):\n    transform.__name__ = transform.__qualname__ = value\n"
        "    raise ValueError"
    ),
}
ELSEWHERE = {
    "row_types__note": "def detect_it(row): raise ValueError(row.values)",
    "hooks__on_table_mapped": (
        "def run(mapping, ctx):\n    mapping.assign(ctx.state.get('x', 'name'), 'not letters')"
    ),
    "hooks__on_job_end": "def run(ctx): raise ValueError(ctx.state['seen'])",
}


# Numbers that a package computes from cells: the cell of the first row is 918273002.125.
NUMERIC = {
    "scores with a value": "def detect_it(column): return column.max()",
    "scores with a small value": "def detect_it(column): return column.max() / 1e9",
    "scores with minus a value": "def detect_it(column): return -column.max()",
    "scores with a sum": "def detect_it(column): return column.sum()",
    "scores with the text of a number": "def detect_it(column): return str(column.max())",
    "scores fields with values": (
        "def detect_it(column): return {'name': column.max(), 'amount': column.min()}"
    ),
    "scores with digits of a value": (
        "def detect_it(column): return (column.max() or 0) % 1e4 / 1e4"
    ),
    "counts with a value": (
        "def validate(value): return [Issue('bad')] * int(value - 918_000_000)"
    ),
    "counts issues of a column with a value": (
        "def validate_column(column):\n"
        "    marked = column.issues_where(column > 0, 'bad')\n"
        "    return [marked] * int(column.max() - 918_000_000)"
    ),
    "counts issues of the table with a value": (
        "def validate_table(column): return [Issue('bad')] * int(column.max() - 918_000_000)"
    ),
    "returns an infinite score": "def detect_it(column): return float('inf')",
    "returns a mask of another length": (
        "def validate_column(column): return column.issues_where(column[:1] > 0, 'bad')"
    ),
    "orders by a value": (
        "def detect_it(column, field): object.__setattr__(field, 'order', column.max())"
    ),
}
ROW_SCORES = {
    "scores a row with a value": "def detect_it(row): return row.values[1]",
    "scores a row type of that name": "def detect_it(row): return {str(row.values[0]): 1}",
    "scores a row type of that number": "def detect_it(row): return {row.values[1]: 1}",
    "scores a row with text": "def detect_it(row): return row.values[0]",
}


def canaries(folder: Path) -> tuple[Path, list[str]]:
    """Write a workbook whose data cells all differ, and return the texts to search for."""
    numbers = count(1)

    def text() -> str:
        return f"Canary{next(numbers):04d}x"

    rows: list[list[Any]] = [["Name", "Amount", "Other"]]
    for _ in range(ROWS):
        rows.append([text(), 918_273_000 + next(numbers) + 0.125, text()])
    planted = [str(cell).casefold() for row in rows[1:] for cell in row]
    return write_workbook(folder / "input.xlsx", Data=rows), planted


def everything_said(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    **files: str,
) -> tuple[str, list[str]]:
    source, planted = canaries(folder)
    said = []
    with caplog.at_level(logging.DEBUG):
        try:
            ran = run_on(folder, source, **files)
            said.append(str(ran.summary))
        except EngineError as failed:
            said += [str(failed), repr(failed), "".join(traceback.format_exception(failed))]
            details = getattr(failed, "details", dict)
            said.append(str(details()))
    out = folder / "out"
    said += [(out / name).read_text() for name in ("artifact.json", "events.ndjson")]
    said += [*capsys.readouterr(), caplog.text]
    return "\n".join(said).casefold(), planted


def found(said: str, planted: list[str]) -> list[str]:
    return [cell for cell in planted if cell in said or cell.removesuffix(".125") in said]


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.filterwarnings("ignore")
def test_nothing_leaks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    code: str,
) -> None:
    files = {"columns__name": BASE + code, "columns__amount": NUMBER}
    assert found(*everything_said(tmp_path, capsys, caplog, **files)) == []


@pytest.mark.parametrize("code", NUMERIC.values(), ids=NUMERIC)
def test_no_number_leaks(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    code: str,
) -> None:
    files = {"columns__name": BASE, "columns__amount": NUMBER + code}
    said, planted = everything_said(tmp_path, capsys, caplog, **files)
    assert found(said, planted) == []
    for cell in planted:
        digits = cell.removesuffix(".125").removeprefix("918")
        assert not digits.isdecimal() or digits not in said


@pytest.mark.parametrize("code", ROW_SCORES.values(), ids=ROW_SCORES)
@pytest.mark.parametrize("row_type", ["note", "header", "data", "mine"])
def test_no_value_leaks_from_the_score_of_a_row(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    code: str,
    row_type: str,
) -> None:
    files = {
        "columns__name": BASE,
        "columns__amount": NUMBER,
        f"row_types__{row_type}": code,
    }
    assert found(*everything_said(tmp_path, capsys, caplog, **files)) == []


def test_recorded_scores_are_clipped_and_rounded(tmp_path: Path) -> None:
    source, _ = canaries(tmp_path)
    code = "def detect_it(column): return {'amount': column.max(), 'name': -0.123456}"
    ran = run_on(tmp_path, source, columns__name=BASE, columns__amount=NUMBER + code)
    deltas = {
        one["delta"]
        for event in ran.stage("mapping")
        for column in event["columns"]
        for candidate in column["candidates"]
        for one in candidate["contributors"]
        if one["rule"] == "col.amount.it"
    }
    assert deltas == {1.0, -0.12}


@pytest.mark.parametrize("file", ELSEWHERE)
def test_nothing_leaks_from_row_types_and_hooks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, file: str
) -> None:
    remember = (
        "def transform(value, ctx):\n"
        "    ctx.state.setdefault('seen', []).append(value)\n    return value"
    )
    files = {"columns__name": BASE + remember, "columns__amount": NUMBER, file: ELSEWHERE[file]}
    assert found(*everything_said(tmp_path, capsys, caplog, **files)) == []


def test_nothing_leaks_when_all_goes_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    files = {
        "columns__name": "FIELD = Field(type='number', unique=True, required=True)",
        "columns__amount": "FIELD = Field(type='date', allowed=['x'], totals=True)",
        "config": "[output]\nunmapped = 'keep'\n",
    }
    said, planted = everything_said(tmp_path, capsys, caplog, **files)
    assert found(said, planted) == []
    assert "invalid_type" in said
    assert "name" in said


def test_the_test_would_find_a_leak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    files = {"columns__name": BASE + "def transform(value): print(value); return value"}
    said, planted = everything_said(tmp_path, capsys, caplog, **files)
    assert found(said, planted)  # the author is responsible for what a package prints


def test_headers_are_left_out_when_asked(tmp_path: Path) -> None:
    rows = [["Name", "Quaint header"], ["a", 1], ["b", 2], ["c", 3]]
    source = write_workbook(tmp_path / "input.xlsx", Data=rows)
    shown = run_on(tmp_path / "1", source, columns__name=BASE)
    request = NormalizeRequest(
        source, tmp_path / "2" / "package", tmp_path / "2" / "out", headers=False
    )
    hidden = run_request(tmp_path / "2", request, {"columns__name": BASE})
    for ran, expected in ((shown, True), (hidden, False)):
        for name in ("artifact.json", "events.ndjson"):
            assert ("Quaint header" in (ran.folder / name).read_text()) is expected
