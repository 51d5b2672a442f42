"""`ade config`: start a package, and check one."""

import json
from pathlib import Path

import pytest
from tests.unit.engine.package.packages import write_package
from typer.testing import CliRunner, Result

from ade.cli import app
from ade.cli.exit_codes import ExitCode
from ade_engine.examples import FOLDER, example_names


def ade(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.mark.parametrize("name", example_names())
def test_every_example_can_be_started_from_and_is_right(tmp_path: Path, name: str) -> None:
    made = ade("config", "init", tmp_path / "mine", "--example", name.replace("_", "-"))
    assert made.exit_code == ExitCode.OK, made.output
    originals = {
        path.relative_to(FOLDER / name)
        for path in (FOLDER / name).rglob("*")
        if "__pycache__" not in path.parts
    }
    assert {
        path.relative_to(tmp_path / "mine") for path in (tmp_path / "mine").rglob("*")
    } == originals
    checked = ade("config", "check", tmp_path / "mine")
    assert checked.exit_code == ExitCode.OK, checked.output
    assert "ok," in checked.output


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    assert ade("config", "init", tmp_path).exit_code == ExitCode.USAGE
    assert ade("config", "init", tmp_path / "mine").exit_code == ExitCode.USAGE
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]


def test_an_unknown_example_is_answered_with_the_known(tmp_path: Path) -> None:
    result = ade("config", "init", tmp_path / "new", "--example", "nothing")
    assert result.exit_code == ExitCode.USAGE
    assert "member_roster" in result.output


def test_check_lists_fields_and_rules_for_programs() -> None:
    report = json.loads(ade("config", "check", FOLDER / "bank_statement", "--json").stdout)
    assert report["valid"]
    assert report["row_types"] == ["row.note.balance_lines"]
    amount = next(one for one in report["fields"] if one["field"] == "amount")
    assert "col.amount.signs" in amount["rules"]


def test_check_lists_every_problem_with_file_and_line(tmp_path: Path) -> None:
    write_package(
        tmp_path, columns__a="FIELD = Field()\n\ndef transform(vlaue): pass\n", columns__b="x = 1"
    )
    result = ade("config", "check", tmp_path)
    assert result.exit_code == ExitCode.JOB_FAILED
    assert "columns/a.py:3" in result.output
    assert "columns/b.py:1" in result.output
    report = json.loads(ade("config", "check", tmp_path, "--json").stdout)
    assert (report["valid"], len(report["problems"])) == (False, 2)
