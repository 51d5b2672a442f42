"""`ade agents`: enrol, list, rotate, revoke, beside a database that is there."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ade.cli import app
from ade.cli.exit_codes import ExitCode

Ade = Callable[..., Result]


@pytest.fixture
def ade(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ade:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path))
    return lambda *words: CliRunner().invoke(app, ["agents", *words])


def test_an_agent_is_enrolled_listed_rotated_and_revoked(ade: Ade) -> None:
    assert "No agent is enrolled" in ade("list").stdout
    enrolled = ade("enrol", "tiago-gpu", "--label", "gpu", "--label", "big")
    assert enrolled.exit_code == 0, enrolled.output
    assert enrolled.stdout.startswith("adec_")
    assert "adea_" not in enrolled.output
    rotated = json.loads(ade("rotate", "tiago-gpu", "--json").stdout)
    assert (rotated["name"], rotated["key"][:5]) == ("tiago-gpu", "adea_")
    assert "tiago-gpu  enrolled  last seen never  labels big,gpu" in ade("list").stdout
    assert ade("revoke", "tiago-gpu").stdout == "tiago-gpu is revoked.\n"
    [listed] = json.loads(ade("list", "--json").stdout)["agents"]
    assert (listed["status"], listed["labels"]) == ("revoked", ["big", "gpu"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["revoke", "nobody"], ExitCode.NOT_FOUND),
        (["rotate", "nobody"], ExitCode.NOT_FOUND),
        (["enrol", "two words"], ExitCode.USAGE),
        (["enrol", "a", "--code-minutes", "0"], ExitCode.USAGE),
    ],
)
def test_what_cannot_be_done_is_one_line(ade: Ade, words: list[str], code: ExitCode) -> None:
    result = ade(*words)
    assert result.exit_code == code
    assert "Traceback" not in result.output


def test_an_agent_is_enrolled_once(ade: Ade) -> None:
    ade("enrol", "a")
    again = ade("enrol", "a")
    assert (again.exit_code, "ade agents rotate a" in again.output) == (ExitCode.USAGE, True)
