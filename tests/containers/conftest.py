"""Fixtures: a real container engine for all tests of this folder, and its API as the agent's."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.container_engine import IMAGE, Engine, container_engine, why_none

from ade.agents.containers.engine import ContainerEngine, ContainerEngineAway


@pytest.fixture(scope="session")
def podman() -> Iterator[Engine]:
    """Run Podman, or skip with the reason why it cannot be run."""
    if (reason := why_none()) is not None:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(tempfile.mkdtemp(prefix="ade-pod-"))
            engine = stack.enter_context(container_engine(folder))
            engine.podman("run", "--rm", "--network", "none", IMAGE, "/bin/busybox", "true")
        except RuntimeError as error:
            pytest.skip(f"no container engine: Podman is there and cannot run anything: {error}")
        yield engine


@pytest.fixture
async def engine(podman: Engine) -> AsyncIterator[ContainerEngine]:
    """Connect to the engine."""
    opened = ContainerEngine(podman.url)
    for _ in range(100):
        try:
            await opened.version()
            break
        except ContainerEngineAway:
            continue
    yield opened
    opened.close()
