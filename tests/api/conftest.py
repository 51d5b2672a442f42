"""Fixtures for the HTTP surface: a real kernel behind the real app, no worker.

serve    opens a `Server` with other rules or settings; closed after the test
server   one with the defaults and no limit on the queue, on SQLite
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.api.server import Server

Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
async def serve(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Serve]:
    """Open servers over one SQLite database."""
    opened: list[Server] = []

    async def open_server(url: str = sqlite_url, **changes: Any) -> Server:
        server = await Server.open(url, tmp_path, **changes)
        opened.append(server)
        return server

    yield open_server
    for server in opened:
        await server.close()


@pytest.fixture
async def server(serve: Serve) -> Server:
    """Open a server with the defaults and no limit on its queue."""
    return await serve()
