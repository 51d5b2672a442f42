"""Fixtures for the worker: real children, and what they are given."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.worker.bench import LIMITS, Bench

from ade.domain.limits import Limits
from ade.sandbox.spec import RunSpec

Assign = Callable[..., RunSpec]


@pytest.fixture
def assign(tmp_path: Path) -> Assign:
    """Make assignments of echo, or with `do` of a rogue."""

    def make(limits: Limits = LIMITS, **inputs: Any) -> RunSpec:
        usual = {"value": None, "sleep_ms": 0, "steps": 0, "print": "", "fail": ""}
        return RunSpec(
            entry="rogues" if "do" in inputs else "ade_engine.entry.echo",
            inputs=inputs if "do" in inputs else usual | inputs,
            limits=limits,
            folder=tmp_path,
        )

    return make


@pytest.fixture
def bench(sqlite_url: str, tmp_path: Path) -> Any:
    """Open a bench over a fresh SQLite database."""
    bench = Bench(sqlite_url, tmp_path / "jobs")
    yield bench
    bench.close()


assert sys.platform == "linux", "children are watched through /proc"
