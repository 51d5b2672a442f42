"""Drivers, one per situation and test process, started when the first test asks for one.

On the fast tier two situations are tried, without the snippets that take their time.
"""

import os
import sys
from collections.abc import Iterator

import pytest
from tests.sandbox.driver_client import DriverClient
from tests.sandbox.modes import BY_NAME, can_run

IS_FAST = os.environ.get("ADE_TEST_TIER") == "fast"


class Drivers:
    """Hold the drivers of this test process."""

    def __init__(self) -> None:
        self._running: dict[str, DriverClient] = {}

    def of(self, name: str) -> DriverClient:
        """Return the driver of a situation; `bare` runs without a sandbox."""
        if name not in self._running:
            driving = DriverClient(BY_NAME.get(name))
            self._running[name] = driving
        return self._running[name]

    def replace(self, name: str) -> None:
        """Let a driver go whose pool was spoiled, so that the next test is not."""
        self._running.pop(name).close()

    def close(self) -> dict[str, list[str]]:
        """End all; return what was left of each."""
        running = [(name, driving) for name, driving in self._running.items() if driving.is_ready]
        return {name: driving.close() for name, driving in running}


@pytest.fixture(scope="session")
def drivers() -> Iterator[Drivers]:
    """Give the drivers of this test process; at the end nothing of them is left."""
    found = Drivers()
    yield found
    left = {name: traces for name, traces in found.close().items() if traces}
    assert not left, f"left behind: {left}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, and say so, what cannot be brought about here."""
    for item in items:
        mode = getattr(item, "callspec", None) and item.callspec.params.get("mode")  # type: ignore[attr-defined]
        if isinstance(mode, str) and mode in BY_NAME and not can_run(BY_NAME[mode]):
            item.add_marker(pytest.mark.skip(reason=f"{mode} needs root"))


assert sys.platform == "linux", "the sandbox needs Linux"
