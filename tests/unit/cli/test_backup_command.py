"""`ade backup`, `ade restore` and `ade db upgrade`: what they print, and their exit codes."""

import uuid
from pathlib import Path

import psycopg
import pytest
from tests.databases import empty_postgres
from typer.testing import CliRunner

from ade.cli import app
from ade.process.compose import sole_owner
from ade.settings import load_settings
from ade.store import migrate


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name the database of the commands, which does not exist yet."""
    named = f"sqlite:///{tmp_path}/data/ade.db"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_DATABASE_URL", named)
    monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path / "data"))
    return named


def ade(*command: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, list(command))
    return answer.exit_code, answer.output


def test_there_must_be_a_database() -> None:
    code, said = ade("backup", "backups")
    assert code == 5
    assert "There is no database at" in said
    assert not Path("backups").exists()


def test_upgrade_makes_a_database() -> None:
    code, said = ade("db", "upgrade")
    assert code == 0
    assert said.startswith("Applied 0001_kernel")
    assert ade("db", "upgrade") == (0, "The database is up to date.\n")


def test_a_database_is_copied_once(postgres_server: str, url: str) -> None:
    migrate.upgrade(url)
    with empty_postgres(postgres_server) as target:
        code, said = ade("db", "copy", "--to", target)
        assert code == 0
        assert "gates: 1" in said
        with psycopg.connect(target) as connection:
            connection.execute("INSERT INTO users VALUES (%s, 'x', 0, 0)", (str(uuid.uuid4()),))
        code, said = ade("db", "copy", "--to", target)
        assert code == 2
        assert "create an empty database" in said
    with sole_owner(load_settings()):
        code, said = ade("db", "copy", "--to", "postgresql:///nothing")
        assert code == 5
        assert "Another ADE process uses" in said


def test_back_up_verify_and_restore(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ade("db", "upgrade")
    code, said = ade("backup", "backups")
    assert code == 0
    assert "sqlite and 0 blobs" in said
    code, said = ade("restore", "backups", "--verify")
    assert code == 0
    assert "is whole" in said
    code, said = ade("restore", "backups")
    assert code == 2
    assert "overwrites nothing" in said
    monkeypatch.setenv("ADE_DATABASE_URL", f"sqlite:///{tmp_path}/other/ade.db")
    monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path / "other"))
    code, said = ade("restore", "backups")
    assert code == 0
    assert said.startswith("Restored ")
    assert (tmp_path / "other" / "ade.db").stat().st_mode & 0o777 == 0o600


def test_a_folder_without_backups() -> None:
    code, said = ade("restore", "nowhere")
    assert code == 3
    assert "holds no complete backup" in said
