"""A server that is idle starts the interpreters that its first jobs will need."""

from importlib.util import find_spec
from pathlib import Path

from tests.processes import eventually, name_of, tree
from tests.system.cells import value
from tests.system.server import starting

from ade.kinds.object_execute import SLOW_IMPORTS

INSTALLED = [name for name in SLOW_IMPORTS if find_spec(name) is not None]


def zygotes(pid: int) -> set[int]:
    """List the warm interpreters of a server."""
    return {below for below in tree(pid) if name_of(below) == "ade-zygote"}


def test_interpreters_are_started_before_any_job_needs_them(tmp_path: Path) -> None:
    with starting(tmp_path, ADE_IDLE_WARMUP_SECONDS="0.05", ADE_LOG_LEVEL="warning") as start:
        server = start.server()
        # One for all jobs, one for runs, one for each large library.
        eventually(lambda: len(zygotes(server.pid)) >= 2 + len(INSTALLED))
        for library in INSTALLED:
            assert value(server, f"import sys\n{library!r} in sys.modules") is True
