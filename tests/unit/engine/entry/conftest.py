"""Give a test its own working directory, as each job has one."""

from pathlib import Path

import pytest


@pytest.fixture
def job_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an empty folder the working directory."""
    monkeypatch.chdir(tmp_path)
