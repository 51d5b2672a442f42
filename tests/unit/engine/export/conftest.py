"""Give each test its own working directory, as each job has one."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _job_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
