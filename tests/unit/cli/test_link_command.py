"""``ade link``: a link that signs in once, made in the database."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ade.app.directory import Directory
from ade.cli import app
from ade.cli.exit_codes import ExitCode
from ade.store.rows import LinkState
from ade.store.session import Session


@pytest.fixture
def session(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    """Open the database that the command is told of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_DATABASE_URL", sqlite_url)
    return Session(sqlite_url)


async def test_it_signs_in(session: Session) -> None:
    directory = Directory(session)
    directory.bootstrap()
    result = CliRunner().invoke(app, ["link", "--minutes", "5"])
    assert result.exit_code == 0, result.output
    found = re.fullmatch(r"http://127\.0\.0\.1:8000/\?token=(adel_\w+)\n", result.stdout)
    assert found is not None
    assert "5 minutes" in result.stderr
    assert await directory.user_sessions().link_state(found[1]) is LinkState.USABLE
    session.close()


def test_it_needs_an_operators_key(session: Session) -> None:
    session.close()
    result = CliRunner().invoke(app, ["link"])
    assert result.exit_code == ExitCode.NOT_FOUND
    assert "ADE_BOOTSTRAP_API_KEY" in result.stderr


def test_without_a_database_it_makes_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["link"])
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert "ade serve" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_reached_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    result = CliRunner().invoke(app, ["link"])
    assert result.exit_code == ExitCode.UNAVAILABLE
    assert len(result.stderr.splitlines()) == 1


def test_it_needs_a_port(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.close()
    monkeypatch.setenv("ADE_PORT", "0")
    assert CliRunner().invoke(app, ["link"]).exit_code == ExitCode.USAGE
