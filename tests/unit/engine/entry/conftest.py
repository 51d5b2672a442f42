"""Give a test a folder of its own to work in, as each job has one."""

from pathlib import Path

import pytest


@pytest.fixture
def job_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an empty folder the working directory."""
    monkeypatch.chdir(tmp_path)
