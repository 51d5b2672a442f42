"""Fixtures for the HTTP surface: a real kernel behind the real app, no worker.

serve      opens a `Server` with other rules or settings; closed after the test
server     one with the defaults and no limit on the queue, on SQLite
standing   the same, shared by the tests of a module: for those that leave nothing behind
"""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import databases
from tests.api.server import Server

Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
def serve(sqlite_url: str, tmp_path: Path) -> Iterator[Serve]:
    """Open servers over one SQLite database."""
    opened: list[Server] = []

    async def open_server(url: str = sqlite_url, **changes: Any) -> Server:
        server = Server.open(url, tmp_path, **changes)
        opened.append(server)
        return server

    yield open_server
    for server in opened:
        server.close()


@pytest.fixture
async def server(serve: Serve) -> Server:
    """Open a server with the defaults and no limit on its queue."""
    return await serve()


@pytest.fixture(scope="module")
def standing(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Open a server for all tests of a module."""
    with databases.fresh_sqlite(sqlite_template) as url:
        server = Server.open(url, tmp_path_factory.mktemp("standing"))
        yield server
        server.close()
