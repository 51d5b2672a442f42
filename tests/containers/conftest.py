"""Fixtures: a real container engine for all tests of this folder, and its API as the agent's."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.container_engine import Engine, container_engine, why_none

from ade.agents.containers.engine import ContainerEngine, EngineAway


@pytest.fixture(scope="session")
def podman() -> Iterator[Engine]:
    """Run Podman, or skip with the reason why it cannot be run."""
    if (reason := why_none()) is not None:
        pytest.skip(reason)
    with container_engine(Path(tempfile.mkdtemp(prefix="ade-pod-"))) as engine:
        yield engine


@pytest.fixture
async def engine(podman: Engine) -> AsyncIterator[ContainerEngine]:
    """Connect to the engine."""
    opened = ContainerEngine(podman.url)
    for _ in range(100):
        try:
            await opened.version()
            break
        except EngineAway:
            continue
    yield opened
    opened.close()
