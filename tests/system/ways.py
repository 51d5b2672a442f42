"""Servers with the sandbox of this machine, and with the one that Docker allows."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox.modes import BY_NAME, can_run
from tests.system.server import Server, starting

DOCKER = BY_NAME["docker"]
WAYS = {"here": (), "docker": DOCKER.command([]) if can_run(DOCKER) else None}


@contextlib.contextmanager
def serving(way: str, folder: Path) -> Iterator[Server]:
    """Serve in one of the ways, or say why that cannot be done here."""
    under = WAYS[way]
    if under is None:
        pytest.skip("only root can take rights away as Docker does")
    with starting(folder, under, ADE_LOG_LEVEL="warning") as start:
        yield start.server()
