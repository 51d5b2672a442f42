"""`ade gc --dry-run`: what it prints, and its exit codes."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ade.cli import app
from ade.storage.blobs import Blobs


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a database in a data folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path / "data"))
    assert ade("db", "upgrade")[0] == 0
    return tmp_path / "data"


def ade(*command: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, list(command))
    return answer.exit_code, answer.output


def test_it_only_lists() -> None:
    code, said = ade("gc")
    assert code == 2
    assert "--dry-run" in said


def test_nothing_to_delete() -> None:
    assert ade("gc", "--dry-run") == (0, "Nothing would be deleted.\n")


def test_an_unused_blob(data: Path) -> None:
    blobs = Blobs(data / "blobs")
    paths = [blobs.path(blobs.write([content], 99).digest) for content in (b"one", b"two")]
    for path in paths:
        os.utime(path, (0, 0))
    code, said = ade("gc", "--dry-run", "--limit", "1")
    assert code == 0
    assert "nothing refers to it" in said
    assert "... and 1 more" in said
    assert "blob: 2, 6 bytes" in said
    code, said = ade("gc", "--dry-run", "--json")
    listed = json.loads(said)
    assert listed["sums"] == {"blob": [2, 6]}
    assert len(listed["items"]) == 2
    assert all(path.exists() for path in paths)
