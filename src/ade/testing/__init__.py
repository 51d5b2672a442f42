"""Test your programs against a real ADE: the pytest fixture `ade_server`.

Where ADE is installed, pytest finds the fixture by itself. It starts `ade serve` once for the test
session: its own process, on SQLite in a temporary folder, on a free port of 127.0.0.1.

    def test_an_echo(ade_server):
        job = ade_server.submit("echo", {"value": 1})
        assert ade_server.wait(job)["status"] == "succeeded"
        assert ade_server.result(job)["outputs"]["result_json"] == 1

The server takes no `ADE_...` variable from the environment but ADE_SANDBOX. Set that to `none` on a
machine without sandbox layers. Override the fixture `ade_server_settings` for anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ade.testing.server import AdeServer

__all__ = ["ade_server", "ade_server_settings"]


@pytest.fixture(scope="session")
def ade_server_settings() -> dict[str, str]:
    """Name settings of the server under test, such as `{"ADE_QUEUE_SIZE": "10"}`."""
    return {}


@pytest.fixture(scope="session")
def ade_server(
    ade_server_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AdeServer]:
    """Start a server for the test session, and stop it at the end."""
    from ade.testing.server import running_server  # pytest imports this plugin in every session

    with running_server(tmp_path_factory.mktemp("ade"), ade_server_settings) as server:
        yield server
