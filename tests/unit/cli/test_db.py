"""`ade db check`: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

from ade.cli import app
from ade.store import migrate

JOB = "0198c000-0000-7000-8000-000000000001"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name the database of the command, which does not exist yet."""
    named = f"sqlite:///{tmp_path}/ade.db"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_DATABASE_URL", named)
    monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path))
    return named


def test_a_database_without_tables_is_not_checked(url: str) -> None:
    answer = CliRunner().invoke(app, ["db", "check"])
    assert answer.exit_code == 5
    assert "ade serve" in answer.output


def test_a_consistent_database(url: str) -> None:
    migrate.upgrade(url)
    answer = CliRunner().invoke(app, ["db", "check"])
    assert (answer.exit_code, answer.output) == (0, "The database is consistent.\n")


def test_what_is_found_and_repaired(url: str) -> None:
    migrate.upgrade(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        registered = f"INSERT INTO executions (work_id, job_id) VALUES ('{JOB}', '{JOB}')"
        connection.execute(text(registered))
    engine.dispose()
    found = CliRunner().invoke(app, ["db", "check", "--json"])
    assert found.exit_code == 1
    [finding] = json.loads(found.output)["findings"]
    assert (finding["name"], finding["count"]) == ("execution_without_job", 1)
    assert finding["ids"] == [JOB]
    repaired = CliRunner().invoke(app, ["db", "check", "--repair"])
    assert repaired.exit_code == 0
    assert "execution_without_job: 1, 1 repaired" in repaired.output
    assert CliRunner().invoke(app, ["db", "check"]).exit_code == 0
