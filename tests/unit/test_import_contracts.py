"""The import contracts catch what they are for: each violation is planted and must be found."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).with_name("lint-imports")

# What is planted: the module that imports, and the import.
VIOLATIONS = {
    "the domain reads the clock and the network": (
        "ade/domain/retry.py",
        "import os, time, urllib.request",
    ),
    "the domain reads settings": ("ade/domain/retry.py", "from ade.settings import Settings"),
    "a sandbox layer needs a package": ("ade/sandbox/layers/landlock.py", "import numpy"),
    "the child needs ADE": ("ade/sandbox/child/zygote.py", "from ade.domain.job import Status"),
    "a stage uses what is for tests": ("ade/stages/stop.py", "import ade.testing"),
    "a stage reads settings": ("ade/stages/stop.py", "from ade.settings import Settings"),
    "a route uses a table": ("ade/http/paging.py", "from ade.store.schema import jobs"),
    "a route uses a transaction": (
        "ade/http/paging.py",
        "from ade.store.transaction import SqlTransaction",
    ),
    "a route uses the worker": ("ade/http/paging.py", "from ade.worker.worker import Worker"),
    "the worker uses a route": (
        "ade/worker/sweeper.py",
        "from ade.http.paging import cursor_after",
    ),
    "the store uses a stage": ("ade/store/rows/jobs.py", "from ade.stages.claim import claim"),
    "something uses the command line": ("ade/worker/sweeper.py", "import ade.cli"),
    "a command that calls a server needs one": (
        "ade/cli/remote/show.py",
        "from ade.domain.job import Status",
    ),
    "something outside of the store speaks SQL": ("ade/kernel.py", "import sqlalchemy"),
    "a reader of sheets uses the pipeline": (
        "ade_engine/sheets/coordinates.py",
        "import ade_engine.pipeline",
    ),
    "the engine uses ADE": ("ade_engine/sheets/coordinates.py", "import ade.domain"),
    "two modules of the engine need each other": (
        "ade_engine/mapping/assignment.py",
        "import ade_engine.mapping.column_mapping",
    ),
    "a package has no place": ("ade/unplaced.py", "import ade.domain"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sources, so that bad imports can be planted in them."""
    folder = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignore)
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def broken(tree: Path) -> list[str]:
    """Name the contracts that the copied sources break."""
    linted = subprocess.run(
        [LINTER, "--no-cache"],
        cwd=tree,
        env={"PYTHONPATH": str(tree / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    lines = linted.stdout.splitlines()
    found = [line.partition(" BROKEN")[0] for line in lines if " BROKEN" in line]
    assert bool(found) == (linted.returncode != 0), linted.stdout + linted.stderr
    return found


def test_the_sources_keep_every_contract(tree: Path) -> None:
    assert broken(tree) == []


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_found(tree: Path, name: str) -> None:
    path, planted = VIOLATIONS[name]
    module = tree / "src" / path
    before = module.read_text() if module.exists() else None
    module.write_text(f"{planted}\n" if before is None else f"{before}\n{planted}\n")
    try:
        assert broken(tree) != []
    finally:
        if before is None:
            module.unlink()
        else:
            module.write_text(before)
