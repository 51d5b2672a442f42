"""`ade run`: rows, an explanation, and an exit code that scripts can rely on."""

import json
from pathlib import Path

import pytest
from tests.unit.engine.package.packages import write_package
from typer.testing import CliRunner, Result

from ade.cli import app
from ade.cli.exit_codes import ExitCode
from ade_engine.examples import FOLDER

ROSTER = FOLDER / "member_roster"
SAMPLE = ROSTER / "samples" / "roster.csv"


def ade(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


def test_a_run_explains_mapping_and_issues_and_names_its_files(tmp_path: Path) -> None:
    result = ade("run", SAMPLE, "--config", ROSTER, "--out", tmp_path)
    assert result.exit_code == ExitCode.OK, result.output
    for words in ("col.member_id.pattern", "no_signal", "invalid_format", "A9", "complete: 6 rows"):
        assert words in result.output
    assert {file.name for file in tmp_path.iterdir()} == {
        "normalized.xlsx",
        "artifact.json",
        "events.ndjson",
    }


def test_format_chooses_the_files(tmp_path: Path) -> None:
    words = ("run", SAMPLE, "--config", ROSTER, "--out", tmp_path)
    assert ade(*words, "--format", "csv", "--format", "parquet").exit_code == ExitCode.OK
    assert {file.name for file in tmp_path.iterdir()} == {
        "normalized.csv",
        "normalized.parquet",
        "normalized.schema.json",
        "issues.csv",
        "artifact.json",
        "events.ndjson",
    }
    assert ade(*words, "--format", "pdf").exit_code == ExitCode.USAGE
    assert ade(*words).exit_code == ExitCode.OK
    assert not (tmp_path / "normalized.csv").exists()  # nothing of the run before is left


def test_a_run_says_what_it_left_out(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(
        "Stock of the month\n\nName,Colour,Count\nAda,red,1\nBen,blue,2\nCy,red,3\nTotal,,6\n"
    )
    package = write_package(
        tmp_path / "package",
        columns__name="FIELD = Field(type='text')",
        columns__count="FIELD = Field(type='number')",
    )
    result = ade("run", source, "--config", package, "--out", tmp_path / "out")
    assert "left out: 1 column: 1 unmapped (B)" in result.output
    assert "left out: 2 rows: 1 preamble (1), 1 total (7)" in result.output


def test_a_table_without_a_header_is_named_as_the_reason(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("".join(f"Ada {n},{n}.5,2024-01-{n:02}\n" for n in range(1, 9)))
    result = ade("run", source, "--config", ROSTER, "--out", tmp_path / "out")
    assert result.exit_code == ExitCode.JOB_FAILED
    assert "table 1  A1:C8  no header  unusable" in result.output
    assert "left out: 1 table: 1 no header" in result.output
    assert "failed: no table could be used (1 table without a header row)" in result.stderr


def test_json_is_for_programs(tmp_path: Path) -> None:
    result = ade("run", SAMPLE, "--config", ROSTER, "--out", tmp_path, "--json")
    assert "members written: 6" in result.stderr  # what the package prints is not the answer
    report = json.loads(result.stdout)
    assert (report["evaluation"], report["summary"]["rows_written"]) == ("complete", 6)


def test_missing_required_fields_are_exit_code_1(tmp_path: Path) -> None:
    source = tmp_path / "members.csv"
    source.write_text("Name,Status\nAda,active\nBen,left\n")
    result = ade("run", source, "--config", ROSTER, "--out", tmp_path / "out")
    assert result.exit_code == ExitCode.JOB_FAILED
    assert "missing: member_id" in result.output


def test_errors_in_the_data_are_said_and_are_a_failure_only_if_strict(tmp_path: Path) -> None:
    words = ("run", SAMPLE, "--config", ROSTER, "--out", tmp_path)
    plain = ade(*words)
    assert plain.exit_code == ExitCode.OK
    assert "ade: 3 errors were found in the data" in plain.stderr
    strict = ade(*words, "--strict")
    assert strict.exit_code == ExitCode.JOB_FAILED
    assert "ade: failed: 3 errors were found" in strict.stderr
    assert (tmp_path / "normalized.xlsx").exists()


def test_strict_is_content_with_data_without_errors(tmp_path: Path) -> None:
    source = tmp_path / "members.csv"
    source.write_text("Member No.,Full name\nRC100001,Ada\nRC100002,Ben\n")
    result = ade("run", source, "--config", ROSTER, "--out", tmp_path / "out", "--strict")
    assert (result.exit_code, result.stderr.count("ade:")) == (ExitCode.OK, 0)


def test_the_package_may_call_warnings_a_failure(tmp_path: Path) -> None:
    code = "FIELD = Field(label='Name')\ndef validate(value):\n    return Issue('odd', 'warning')\n"
    package = write_package(tmp_path / "package", columns__name=code)
    source = tmp_path / "in.csv"
    source.write_text("Name,Amount\nAda,1\nBen,2\n")
    words = ("run", source, "--config", package, "--out", tmp_path / "out")
    assert ade(*words).exit_code == ExitCode.OK
    (package / "config.toml").write_text('[run]\nfail_on = "warnings"\n')
    result = ade(*words)
    assert result.exit_code == ExitCode.JOB_FAILED
    assert "ade: failed: 2 warnings were found" in result.stderr
    assert ade(*words, "--strict").exit_code == ExitCode.JOB_FAILED  # never less strict


def test_without_out_the_output_stands_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ade("run", SAMPLE, "--config", ROSTER).exit_code == ExitCode.OK
    assert (tmp_path / "roster.normalized" / "normalized.xlsx").exists()


@pytest.mark.parametrize(
    "words", [("nowhere.csv", "--config", ROSTER), (SAMPLE,), (SAMPLE, "--config", "nowhere")]
)
def test_wrong_usage_is_exit_code_2(words: tuple[object, ...]) -> None:
    assert ade("run", *words).exit_code == ExitCode.USAGE


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    source = tmp_path / "broken.xlsx"
    source.write_bytes(b"PK\x03\x04 and then nothing")
    result = ade("run", source, "--config", ROSTER, "--out", tmp_path / "out")
    assert result.exit_code == ExitCode.JOB_FAILED
    assert result.stderr.startswith("ade: ")
    assert len(result.stderr.splitlines()) == 1


def test_values_are_shown_only_with_a_traceback(tmp_path: Path) -> None:
    code = "FIELD = Field(label='Name')\ndef transform(value):\n    raise ValueError(value)\n"
    package = write_package(tmp_path / "package", columns__name=code)
    source = tmp_path / "in.csv"
    source.write_text("Name,Amount\nsecret1,1\nsecret2,2\nsecret3,3\n")
    words = ("run", source, "--config", package, "--out", tmp_path / "out")
    plain = ade(*words)
    assert plain.exit_code == ExitCode.JOB_FAILED
    assert "columns/name.py:3" in plain.output
    assert "secret" not in plain.output
    assert "secret1" in ade(*words, "--traceback").output
    report = json.loads(ade(*words, "--json").stdout)
    assert report["error"]["details"]["cell"] == "A2"
