"""Carry out the steps of a call on an httpx client."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ade.client.core.names import segment
from ade.client.core.retry import RetryPolicy
from ade.client.core.steps import (
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


class Session:
    """Hold the connections to one server; threads may share it."""

    def __init__(self, connection: Connection, policy: RetryPolicy, timeout_seconds: float) -> None:
        import httpx

        self.connection = connection
        self.policy = policy
        self._timeout_seconds = timeout_seconds
        self._http = httpx.Client(**client_options(connection, timeout_seconds))

    def patient(self) -> Session:
        """Return the same connections for requests that wait for ever while the queue is full."""
        found = copy.copy(self)
        found.policy = replace(self.policy, busy_seconds_max=None)
        return found

    def path(self, rest: str) -> str:
        """Return a path below the workspace."""
        return f"/api/v1/workspaces/{segment(self.connection.workspace)}/{rest}"

    def run(self, call: Call[T]) -> T:
        """Carry out a call and return its value."""
        with _Walking(self, Walk(call)) as walking:
            while walking.advance() is not None:
                pass
            return cast(T, walking.walk.result)

    def iterate(self, call: Call[None]) -> Iterator[Any]:
        """Carry out a call and yield what it emits."""
        with _Walking(self, Walk(call)) as walking:
            while (emitted := walking.advance()) is not None:
                yield emitted.value

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def open(self, request: Request) -> httpx.Response:
        """Send a request and return its answer unread."""
        import httpx

        body = request.body
        content = body if body is None or isinstance(body, bytes) else body.pieces()
        try:
            options = request_options(request, self._timeout_seconds)
            return self._http.send(
                self._http.build_request(**options, content=content), stream=True
            )
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise failed(error, self.connection.url) from None


class _Walking:
    """Hold a call and the answer that it has open."""

    def __init__(self, session: Session, walk: Walk[Any]) -> None:
        self.walk = walk
        self._session = session
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def __enter__(self) -> _Walking:
        return self

    def __exit__(self, *_: object) -> None:
        self.walk.close()
        self._close()

    def advance(self) -> Emit | None:
        """Go on until something is emitted; None at the end."""
        while (step := self.walk.next()) is not None:
            if isinstance(step, Emit):
                return step
            try:
                self.walk.note(self._do(step))
            except TransportFailed as failure:
                self._close()
                self.walk.fail(failure)
        return None

    def _do(self, step: Any) -> Any:
        match step:
            case Send(request):
                return self._send(request)
            case Open(request):
                return self._open(request)
            case Read():
                return self._read()
            case Close():
                self._close()
            case Sleep(seconds):
                time.sleep(seconds)
            case Now():
                return time.monotonic()
        return None

    def _send(self, request: Request) -> Reply:
        reply = self._open(request)
        if reply.body:
            return reply
        pieces = []
        while piece := self._read():
            pieces.append(piece)
        return Reply(reply.status, reply.headers, b"".join(pieces))

    def _open(self, request: Request) -> Reply:
        self._close()
        self._response = response = self._session.open(request)
        self._pieces = response.iter_bytes()
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = b""
        while response.status_code >= 400 and len(body) < ERROR_BYTES_MAX:
            piece = self._read()
            body += piece
            if not piece:
                break
        return Reply(response.status_code, headers, body)

    def _read(self) -> bytes:
        import httpx

        if self._response is None:
            return b""
        try:
            piece = next(self._pieces, b"")
        except httpx.TransportError as error:
            raise failed(error, self._session.connection.url) from None
        if not piece:
            self._close()
        return piece

    def _close(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None
