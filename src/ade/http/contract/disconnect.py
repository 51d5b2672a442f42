"""Notice that the client of a request has left while it waits for its answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive


@asynccontextmanager
async def disconnect(receive: Receive) -> AsyncIterator["asyncio.Future[None]"]:
    """Watch for the client's disconnect; the body must have been read."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(watch())
    try:
        yield gone
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
