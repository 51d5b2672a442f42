"""Carry out the steps of a call on an httpx client for asyncio."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ade.client.core.names import segment
from ade.client.core.retry import RetryPolicy
from ade.client.core.steps import (
    Body,
    Call,
    Close,
    Emit,
    Now,
    Open,
    Read,
    Reply,
    Request,
    Send,
    Sleep,
    TransportFailed,
    Walk,
)
from ade.client.profiles import Connection
from ade.client.transport import ERROR_BYTES_MAX, client_options, failed, request_options

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class AsyncSession:
    """Hold the connections to one server, for one event loop of asyncio."""

    def __init__(self, connection: Connection, policy: RetryPolicy, timeout_seconds: float) -> None:
        import httpx

        self.connection = connection
        self.policy = policy
        self._timeout_seconds = timeout_seconds
        self._http = httpx.AsyncClient(**client_options(connection, timeout_seconds))

    def patient(self) -> AsyncSession:
        """Return the same connections for requests that wait for ever while the queue is full."""
        found = copy.copy(self)
        found.policy = replace(self.policy, busy_seconds_max=None)
        return found

    def path(self, rest: str) -> str:
        """Return a path below the workspace."""
        return f"/api/v1/workspaces/{segment(self.connection.workspace)}/{rest}"

    async def run(self, call: Call[T]) -> T:
        """Carry out a call and return its value."""
        async with _Walking(self, Walk(call)) as walking:
            while await walking.advance() is not None:
                pass
            return cast(T, walking.walk.result)

    async def iterate(self, call: Call[None]) -> AsyncIterator[Any]:
        """Carry out a call and yield what it emits."""
        async with _Walking(self, Walk(call)) as walking:
            while (emitted := await walking.advance()) is not None:
                yield emitted.value

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def open(self, request: Request) -> httpx.Response:
        """Send a request and return its answer unread."""
        import httpx

        body = request.body
        content = body if body is None or isinstance(body, bytes) else _pieces(body)
        try:
            options = request_options(request, self._timeout_seconds)
            built = self._http.build_request(**options, content=content)
            return await self._http.send(built, stream=True)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise failed(error, self.connection.url) from None


class _Walking:
    """Hold a call and the answer that it has open."""

    def __init__(self, session: AsyncSession, walk: Walk[Any]) -> None:
        self.walk = walk
        self._session = session
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def __aenter__(self) -> _Walking:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.walk.close()
        await self._close()

    async def advance(self) -> Emit | None:
        """Go on until something is emitted; None at the end."""
        while (step := self.walk.next()) is not None:
            if isinstance(step, Emit):
                return step
            try:
                self.walk.note(await self._do(step))
            except TransportFailed as failure:
                await self._close()
                self.walk.fail(failure)
        return None

    async def _do(self, step: Any) -> Any:
        match step:
            case Send(request):
                return await self._send(request)
            case Open(request):
                return await self._open(request)
            case Read():
                return await self._read()
            case Close():
                await self._close()
            case Sleep(seconds):
                await asyncio.sleep(seconds)
            case Now():
                return time.monotonic()
        return None

    async def _send(self, request: Request) -> Reply:
        reply = await self._open(request)
        if reply.body:
            return reply
        pieces = []
        while piece := await self._read():
            pieces.append(piece)
        return Reply(reply.status, reply.headers, b"".join(pieces))

    async def _open(self, request: Request) -> Reply:
        await self._close()
        self._response = response = await self._session.open(request)
        self._pieces = response.aiter_bytes()
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = b""
        while response.status_code >= 400 and len(body) < ERROR_BYTES_MAX:
            piece = await self._read()
            body += piece
            if not piece:
                break
        return Reply(response.status_code, headers, body)

    async def _read(self) -> bytes:
        import httpx

        if self._response is None or self._pieces is None:
            return b""
        try:
            piece = await anext(self._pieces, b"")
        except httpx.TransportError as error:
            raise failed(error, self._session.connection.url) from None
        if not piece:
            await self._close()
        return piece

    async def _close(self) -> None:
        if self._response is not None:
            await self._response.aclose()
            self._response = None


async def _pieces(body: Body) -> AsyncIterator[bytes]:
    """Read a body in a thread, so that the event loop never waits for a disk."""
    pieces: Iterator[bytes] = body.pieces()
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece
