"""A run turns a file into rows, issues and an explanation."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.package.packages import write_package
from tests.unit.engine.pipeline.workbooks import Ran, run, run_on, write_workbook

from ade_engine.entry.normalize import NormalizeRequest, normalize
from ade_engine.errors import EngineError, UnreadableFile
from ade_engine.package import AuthorError, DependencyMissing, PackageInvalid

ID = "FIELD = Field(label='ID', type='text', required=True, order=1)\n"
NAME = "FIELD = Field(label='Name', type='text', order=2)\n"
AMOUNT = "FIELD = Field(label='Amount', type='number', order=3)\n"
PEOPLE: list[list[Any]] = [
    ["ID", "Name", "Amount"],
    ["A1", " Ada ", 10],
    ["A2", "Ben", "1,000.5"],
    ["A3", "Cy", 30],
    ["A4", "Di", 40],
]


def fields(**more: str) -> dict[str, str]:
    return {"columns__id": ID, "columns__name": NAME, "columns__amount": AMOUNT, **more}


def test_rows_are_typed_and_written_in_the_order_of_the_fields(tmp_path: Path) -> None:
    ran = run(tmp_path, [row[::-1] for row in PEOPLE], **fields())
    assert ran.summary["evaluation"] == "complete"
    assert ran.output == {
        "Normalized": [
            ["ID", "Name", "Amount"],
            ["A1", "Ada", 10],
            ["A2", "Ben", 1000.5],
            ["A3", "Cy", 30],
            ["A4", "Di", 40],
        ]
    }
    assert ran.stage("transform")[0]["changed"] == {"name": 1, "amount": 1}


@pytest.mark.parametrize(
    "transform",
    [
        "def transform(value): return value.upper()",
        "def transform(value, row): return (value + '' if row['id'] else '').upper()",
        "def transform_column(column): return column.upper()",
        "def transform_column(column): return [v.upper() for v in column]",
        "def transform_column(column): return column.to_polars().str.to_uppercase()",
    ],
)
def test_a_transform_changes_values_one_by_one_or_all_at_once(
    tmp_path: Path, transform: str
) -> None:
    ran = run(tmp_path, PEOPLE, **fields(columns__name=NAME + transform))
    assert [row[1] for row in ran.rows] == ["ADA", "BEN", "CY", "DI"]
    assert ran.stage("transform")[0]["changed"]["name"] == 4


def test_a_function_of_a_value_alone_is_called_once_for_each_value(tmp_path: Path) -> None:
    text = (
        NAME + "SEEN = []\ndef transform(value):\n    SEEN.append(value)\n    return str(len(SEEN))"
    )
    rows = [PEOPLE[0], *([f"A{n}", "ab"[n % 2] * 3, n] for n in range(20))]
    ran = run(tmp_path, rows, **fields(columns__name=text))
    assert {row[1] for row in ran.rows} == {"1", "2"}


def test_true_and_one_are_not_the_same_value(tmp_path: Path) -> None:
    text = "FIELD = Field(order=2)\ndef transform(value): return type(value).__name__"
    rows = [["ID", "Name", "Amount"], ["A1", True, 1], ["A2", 1, 1], ["A3", "x", 1]]
    ran = run(tmp_path, rows, **fields(columns__name=text))
    assert [row[1] for row in ran.rows] == ["bool", "int", "str"]


def test_functions_are_not_asked_about_empty_cells_and_errors(tmp_path: Path) -> None:
    text = NAME + (
        "def transform(value): return value.upper()\n"
        "def validate(value): return None if value.isupper() else 'small'"
    )
    rows = [["ID", "Name"], ["A1", "x"], ["A2", None], ["A3", "#REF!"], ["A4", "y"]]
    ran = run(tmp_path, rows, columns__id=ID, columns__name=text)
    assert [row[1] for row in ran.rows] == ["X", None, "#REF!", "Y"]
    assert ran.issues == {("name", "error_cell"): ["B4"]}


def test_transforms_see_the_other_fields_as_they_were(tmp_path: Path) -> None:
    swap = "def transform(value, row): return row['%s']"
    ran = run(
        tmp_path, PEOPLE, **fields(columns__id=ID + swap % "name", columns__name=NAME + swap % "id")
    )
    assert ran.rows[1][:2] == ["Ben", "A2"]


@pytest.mark.parametrize(
    "validate",
    [
        "def validate(value): return 'too_long' if len(value) > 2 else None",
        "def validate(value): return Issue('too_long') if len(value) > 2 else True",
        "def validate(value): return [Issue('too_long')] if len(value) > 2 else []",
        "def validate(value, row): return 'too_long' if len(row['name']) > 2 else None",
        "def validate_column(column):\n"
        "    return column.issues_where(column.matches('...'), 'too_long')",
        "def validate_column(column): yield column.issues_where(column.matches('...'), 'too_long')",
        "def validate_table(column): return column.issues_where(column.longer_than(2), 'too_long')",
    ],
)
def test_issues_are_found_value_by_value_or_all_at_once(tmp_path: Path, validate: str) -> None:
    ran = run(tmp_path, PEOPLE, **fields(columns__name=NAME + validate))
    assert ran.issues == {("name", "too_long"): ["B2:B3"]}
    assert ran.summary["summary"]["errors"] == 2


def test_false_is_an_issue_without_a_name_of_its_own(tmp_path: Path) -> None:
    ran = run(tmp_path, PEOPLE, **fields(columns__name=NAME + "def validate(value): return False"))
    assert ran.issues == {("name", "invalid"): ["B2:B5"]}


def test_severities_are_counted_apart(tmp_path: Path) -> None:
    text = NAME + (
        "def validate(value):\n"
        "    return Issue('a', 'warning', 'Look.'), Issue('b', 'info'), Issue('c')"
    )
    counts = run(tmp_path, PEOPLE, **fields(columns__name=text)).summary["summary"]
    assert (counts["errors"], counts["warnings"], counts["infos"], counts["issues"]) == (
        4,
        4,
        4,
        12,
    )


def test_columns_are_checked_against_each_other(tmp_path: Path) -> None:
    text = AMOUNT + (
        "def validate_column(column, table):\n"
        "    return column.issues_where(table['id'] == 'A3', code='not_this_one')"
    )
    assert run(tmp_path, PEOPLE, **fields(columns__amount=text)).issues == {
        ("amount", "not_this_one"): ["C4"]
    }


def test_a_whole_table_may_have_an_issue(tmp_path: Path) -> None:
    text = AMOUNT + (
        "def validate_table(column, table):\n"
        "    assert len(table['id']) == len(column) == 4\n"
        "    return Issue('sum_is_off') if column.sum() > 1000 else None"
    )
    ran = run(tmp_path, PEOPLE, **fields(columns__amount=text))
    (issue,) = ran.stage("validate")[0]["issues"]
    assert (issue["code"], issue["count"], issue["ranges"]) == ("sum_is_off", 1, [])


def test_a_whole_table_shows_the_fields_that_its_validator_names(tmp_path: Path) -> None:
    text = AMOUNT + (
        "OTHER = 'id'\ndef validate_table(table):\n    table['amount']\n    table[OTHER]"
    )
    with pytest.raises(AuthorError) as refused:
        run(tmp_path, PEOPLE, **fields(columns__amount=text))
    assert "string literals" in refused.value.failure.hint


def test_a_stated_total_can_be_asked_for(tmp_path: Path) -> None:
    text = AMOUNT + (
        "def validate_table(column, table):\n"
        "    assert table.stated_total('id') is None\n"
        "    return Issue('total_is_right') if table.stated_total('amount') == column.sum() else []"
    )
    rows = [*PEOPLE, ["Total", None, 1080.5]]
    ran = run(tmp_path, rows, **fields(columns__amount=text))
    assert ("amount", "total_is_right") in ran.issues
    assert ran.stage("structure")[0]["tables"][0]["skipped"] == {
        "total": {"count": 1, "ranges": ["6"], "ranges_omitted": 0}
    }


def test_declared_checks_need_no_code(tmp_path: Path) -> None:
    rows = [
        ["ID", "Name", "Amount"],
        ["A1", "x", 1],
        [None, "y", "many"],
        ["A3", "z", 2.5],
        ["A1", "x", 3],
    ]
    ran = run(
        tmp_path,
        rows,
        columns__id="FIELD = Field(required=True, unique=True)",
        columns__name="FIELD = Field(allowed=['x', 'y'])",
        columns__amount="FIELD = Field(type='integer')",
    )
    assert ran.issues == {
        ("id", "missing_value"): ["A3"],
        ("id", "duplicate_value"): ["A5"],
        ("name", "not_allowed"): ["B4"],
        ("amount", "invalid_type"): ["C3:C4"],
    }


def test_unique_values_are_unique_across_blocks(tmp_path: Path) -> None:
    count = 40_000
    source = tmp_path / "big.csv"
    lines = ["ID,Name", *(f"K{n:05d},x" for n in range(count)), "K00007,again"]
    source.write_text("\n".join(lines))
    ran = run_on(tmp_path, source, columns__id="FIELD = Field(type='text', unique=True)")
    assert ran.issues == {("id", "duplicate_value"): [f"A{count + 2}"]}
    assert ran.summary["summary"]["rows_written"] == count + 1


def test_columns_without_a_field_are_dropped_or_kept_at_the_end(tmp_path: Path) -> None:
    rows = [["Colour", "ID", "Size"], ["red", "A1", 1], ["blue", "A2", 2], ["red", "A3", 3]]
    dropped = run(tmp_path / "1", rows, columns__id=ID)
    assert dropped.output["Normalized"][0] == ["ID"]
    kept = run(tmp_path / "2", rows, columns__id=ID, config="[output]\nunmapped = 'keep'\n")
    assert kept.output["Normalized"][:2] == [["ID", "Colour", "Size"], ["A1", "red", 1]]


def test_a_field_that_no_column_has_is_an_empty_column(tmp_path: Path) -> None:
    rows = [["ID", "Amount"], ["A1", 1], ["A2", 2], ["A3", 3]]
    assert run(tmp_path, rows, **fields()).rows == [
        ["A1", None, 1],
        ["A2", None, 2],
        ["A3", None, 3],
    ]


def two_sheets(folder: Path) -> Path:
    return write_workbook(
        folder / "two.xlsx",
        One=[["ID", "Amount"], ["A1", 1], ["A2", 2], ["A3", 3]],
        Two=[["Amount", "ID", "Extra"], [4, "B1", "x"], [5, "B2", "y"], [6, "B3", "z"]],
    )


def test_tables_are_stacked_or_get_a_sheet_each(tmp_path: Path) -> None:
    package = {"columns__id": ID, "columns__amount": AMOUNT}
    stacked = run_on(tmp_path / "1", two_sheets(tmp_path), **package)
    assert [row[0] for row in stacked.rows] == ["A1", "A2", "A3", "B1", "B2", "B3"]
    config = "[output]\ntables = 'sheets'\nunmapped = 'keep'\nsheet = 'T'\n"
    apart = run_on(tmp_path / "2", two_sheets(tmp_path), config=config, **package)
    assert {name: rows[0] for name, rows in apart.output.items()} == {
        "T 1": ["ID", "Amount"],
        "T 2": ["ID", "Amount", "Extra"],
    }


def test_sheets_are_chosen_by_name(tmp_path: Path) -> None:
    config = "[reading]\nsheets = ['T*']\n"
    ran = run_on(tmp_path, two_sheets(tmp_path), config=config, columns__id=ID)
    assert [row[0] for row in ran.rows] == ["B1", "B2", "B3"]


def test_the_evaluation_stands_beside_the_status(tmp_path: Path) -> None:
    required = "FIELD = Field(required=True)"
    partial = run(tmp_path / "1", PEOPLE, columns__id=ID, columns__email=required)
    assert (partial.summary["evaluation"], partial.summary["missing"]) == ("partial", ["email"])
    assert partial.artifact["status"] == "succeeded"
    unusable = run(tmp_path / "2", PEOPLE, columns__email=required, columns__name=NAME)
    assert (unusable.summary["evaluation"], unusable.summary["missing"]) == ("unusable", ["email"])
    assert unusable.output == {"Normalized": [["Email", "Name"]]} or unusable.rows == []


def test_hooks_run_in_their_turn_and_share_a_state(tmp_path: Path) -> None:
    note = "    ctx.state.setdefault('seen', []).append('%s')\n"
    ran = run(
        tmp_path,
        PEOPLE,
        **fields(
            hooks__on_job_start="def run(ctx):\n" + note % "start",
            hooks__on_table_mapped="def run(table, mapping, ctx):\n"
            + note % "mapped"
            + "    mapping.release('amount')\n",
            hooks__on_table_written="def run(summary, ctx):\n" + note % "written",
            hooks__on_job_end="def run(summary, ctx):\n"
            "    assert ctx.state['seen'] == ['start', 'mapped', 'written']\n"
            "    assert summary['rows_written'] == 4\n"
            "    assert summary['evaluation'] == 'complete'\n",
        ),
    )
    assert ran.stage("mapping")[0]["columns"][2]["reason"] == "released"
    assert [row[2] for row in ran.rows] == [None] * 4


def test_row_types_help_to_find_tables(tmp_path: Path) -> None:
    rows = [*PEOPLE, ["A5", "ignore me", 50], ["A6", "Flo", 60]]
    detector = "def detect_words(row): return 1.0 if 'ignore me' in row.texts else 0"
    ran = run(tmp_path, rows, **fields(row_types__note=detector))
    assert [row[0] for row in ran.rows] == ["A1", "A2", "A3", "A4", "A6"]


def failed(folder: Path, kind: type[EngineError], **files: str) -> dict[str, Any]:
    with pytest.raises(kind):
        run(folder, PEOPLE, **files)
    artifact = Ran(folder / "out", {}).artifact
    assert (artifact["status"], artifact["evaluation"]) == ("failed", None)
    assert not list((folder / "out").glob("*.xlsx*"))
    assert not list((folder / "out").glob(".*"))
    error: dict[str, Any] = artifact["error"]
    return error


def test_a_package_exception_is_reported_with_its_location_and_cell(tmp_path: Path) -> None:
    text = NAME + "\ndef transform(value):\n    return {'Ada': 1}[value]\n"
    error = failed(tmp_path, AuthorError, **fields(columns__name=text))
    assert (error["category"], error["code"]) == ("USER_CODE_ERROR", "author_code_failed")
    assert error["details"] == {
        "exception": "KeyError",
        "file": "columns/name.py",
        "line": 4,
        "function": "transform",
        "source": "return {'Ada': 1}[value]",
        "field": "name",
        "rule": "col.name.transform",
        "cell": "Data!B3",
        "hint": error["details"]["hint"],
    }


def test_a_hook_that_fails_at_the_end_leaves_no_workbook(tmp_path: Path) -> None:
    error = failed(tmp_path, AuthorError, **fields(hooks__on_job_end="def run(ctx): 1 / 0"))
    assert error["details"]["rule"] == "hook.on_job_end"


def test_an_import_that_is_missing_names_the_module(tmp_path: Path) -> None:
    text = NAME + "def transform(value):\n    import no_such_module_here\n"
    error = failed(tmp_path, DependencyMissing, **fields(columns__name=text))
    assert (error["category"], error["code"]) == ("DEPENDENCY_ERROR", "dependency_missing")
    assert error["details"]["module"] == "no_such_module_here"


def test_an_unusable_package_is_reported_with_all_its_problems(tmp_path: Path) -> None:
    error = failed(tmp_path, PackageInvalid, columns__a="x", columns__b="FIELD = 1")
    assert error["code"] == "package_invalid"
    assert [one["code"] for one in error["details"]["problems"]] == ["load_failed", "no_field"]


def test_a_file_that_cannot_be_read_is_an_error_with_a_code(tmp_path: Path) -> None:
    source = tmp_path / "broken.xlsx"
    source.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(UnreadableFile):
        run_on(tmp_path, source, columns__id=ID)
    error = Ran(tmp_path / "out", {}).artifact["error"]
    assert error["category"] == "VALIDATION_ERROR"
    assert error["code"]


def test_progress_is_reported_in_rows(tmp_path: Path) -> None:
    reports: list[tuple[int, int, str]] = []
    write_workbook(tmp_path / "input.xlsx", Data=PEOPLE)
    run(tmp_path, PEOPLE, **fields())
    request = NormalizeRequest(tmp_path / "input.xlsx", tmp_path / "package", tmp_path / "out")
    normalize(request, lambda *report: reports.append(report))
    assert reports[0][2] == "reading"
    assert reports[-1] == (4, 4, "writing")


def test_the_same_input_and_package_give_the_same_bytes(tmp_path: Path) -> None:
    def made(name: str, *, timings: bool) -> dict[str, bytes]:
        out = tmp_path / name
        source = tmp_path / "1" / "input.xlsx"
        normalize(NormalizeRequest(source, tmp_path / "1" / "package", out, "j", timings=timings))
        return {file.name: file.read_bytes() for file in sorted(out.iterdir())}

    run(tmp_path / "1", PEOPLE, **fields(columns__name=NAME + "def validate(value): return 'x_y'"))
    assert made("a", timings=False) == made("b", timings=False)
    artifacts = [json.loads(made(name, timings=True)["artifact.json"]) for name in ("c", "d")]
    assert all(artifact.pop("timings")["total_ms"] >= 0 for artifact in artifacts)
    assert artifacts[0] == artifacts[1] == json.loads(made("a", timings=False)["artifact.json"])


def test_dates_of_any_writing_become_dates(tmp_path: Path) -> None:
    rows = [["ID", "Day"], ["A1", dt.date(2024, 2, 1)], ["A2", "2024-02-02"], ["A3", "2/3/2024"]]
    ran = run(tmp_path, rows, columns__id=ID, columns__day="FIELD = Field(type='date')")
    assert [row[1].date() for row in ran.rows] == [dt.date(2024, 2, day) for day in (1, 2, 3)]


def test_progress_names_the_hooks_while_they_run(tmp_path: Path) -> None:
    events = ("on_job_start", "on_table_mapped", "on_table_written", "on_job_end")
    hooks = {f"hooks__{event}": f"def {event}():\n    pass\n" for event in events}
    package = write_package(tmp_path / "package", **fields(**hooks))
    source = write_workbook(tmp_path / "in.xlsx", S=PEOPLE)
    said: list[str] = []
    request = NormalizeRequest(source, package, tmp_path / "out")
    normalize(request, lambda done, total, message: said.append(message))
    phases = [one for at, one in enumerate(said) if not at or said[at - 1] != one]
    assert phases == [
        "on_job_start",
        "reading",
        "on_table_mapped",
        "reading",
        "writing",
        "on_table_written",
        "writing",
        "on_job_end",
        "writing",
    ]


def test_the_error_of_an_unmapped_field_names_it(tmp_path: Path) -> None:
    check = "def validate_table(table): return table['missing_one'].issues_where(True, 'x')"
    files = fields(columns__missing_one="FIELD = Field()", columns__name=NAME + check)
    with pytest.raises(AuthorError, match="mapped to missing_one"):
        run(tmp_path, PEOPLE, **files)


def test_a_header_with_a_unit_is_mapped_and_its_unit_recorded(tmp_path: Path) -> None:
    rows = [["ID", "Name", "Amount (EUR)"], *PEOPLE[1:]]
    ran = run(tmp_path, rows, **fields())
    column = ran.stage("mapping")[0]["columns"][2]
    assert (column["target"], column["unit"]) == ("amount", "EUR")
    assert ran.issues == {}


@pytest.mark.parametrize("second", ["Amount", "Amount (USD)"])
def test_a_second_column_that_fits_as_well_is_reported(tmp_path: Path, second: str) -> None:
    first = "Amount" if second == "Amount" else "Amount (EUR)"
    rows = [["ID", first, second], ["A", 1, 2], ["B", 3, 4]]
    ran = run(tmp_path, rows, columns__id=ID, columns__amount=AMOUNT)
    assert ran.issues == {("amount", "several_columns_fit"): ["B1"]}


def test_numbers_in_thousands_are_reported(tmp_path: Path) -> None:
    rows = [["ID", "Amount (TEUR)"], ["A", 1], ["B", 3], ["C", 4]]
    ran = run(tmp_path, rows, columns__id=ID, columns__amount=AMOUNT)
    assert ran.issues == {("amount", "scaled_numbers"): ["B1"]}
