"""Cells as people paste them come back as they expect; plain Python prints the same."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.cells import run
from tests.system.notebook_cells import CELLS
from tests.system.server import Server, starting

BY_NAME = {cell.name: cell for cell in CELLS}
# What plain Python does not have: notebooks' own names, top-level await, and no screen.
NOT_PYTHON = {"%matplotlib inline", "display", "top-level await", "!pip install"}
ENVIRONMENT = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "MPLBACKEND": "agg",
               "LANG": "C.UTF-8"}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all tests of this module."""
    with starting(tmp_path_factory.mktemp("pasted"), ADE_LOG_LEVEL="warning") as start:
        yield start.server()


def test_there_are_forty() -> None:
    assert len(CELLS) == len(BY_NAME) == 40


@pytest.mark.parametrize("name", BY_NAME)
def test_a_pasted_cell_comes_back_as_expected(server: Server, name: str) -> None:
    cell = BY_NAME[name]
    found = run(server, cell.source)
    if cell.error is not None:
        assert found["error"]["code"] == cell.error, found
        assert found["error"]["category"] == "USER_CODE_ERROR"
        return
    assert found["status"] == "SUCCEEDED", found["error"]
    assert _comparable(found["outputs"]["result_json"]) == cell.value
    assert [one["name"] for one in found["artifacts"]] == list(cell.artifacts), found
    if cell.stdout is not None:
        assert found["outputs"]["stdout"] == cell.stdout


def _comparable(value: Any) -> Any:
    """Drop the repr of a value that is kept as artifacts."""
    if isinstance(value, dict) and "artifacts" in value:
        return {"artifacts": value["artifacts"]}
    return value


@pytest.mark.parametrize("name", [cell.name for cell in CELLS if cell.name not in NOT_PYTHON])
def test_plain_python_prints_and_writes_the_same(server: Server, name: str, tmp_path: Path) -> None:
    cell = BY_NAME[name]
    (tmp_path / "cell.py").write_text(cell.source)
    script = subprocess.run(
        [sys.executable, "cell.py"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    found = run(server, cell.source)
    assert (script.returncode == 0) == (found["status"] == "SUCCEEDED"), script.stderr
    assert found["outputs"]["stdout"] == script.stdout
    files = {path.name for path in tmp_path.iterdir() if path.is_file()} - {"cell.py"}
    assert files <= {one["name"] for one in found["artifacts"]}
