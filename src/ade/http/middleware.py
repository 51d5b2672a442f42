"""The outermost middleware, in plain ASGI: paths, trace ids, latency, and unexpected errors.

Trailing slashes are cut off before anything looks at the path. A request's `traceparent` gives the
trace id, or one is made; every answer carries it.
"""

import asyncio
import random
import re
import time
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ade.domain.errors import Unavailable
from ade.http.access_log import AccessLog
from ade.http.problems import problem_response
from ade.http.responses import RawResponse
from ade.telemetry import metrics

TRACE_HEADER = b"x-trace-id"
TRACEPARENT = re.compile(rb"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
UNMATCHED = "unmatched"
CLIENT_GONE = 499
# When it shuts down, the server cancels what has not been answered after some seconds.
SHUTTING_DOWN = "This server is shutting down and did not finish the request. Send it again."


class RequestMiddleware:
    """Give every request a trace id and every error an answer, and measure the time it takes."""

    def __init__(
        self,
        app: ASGIApp,
        access_log: AccessLog | None = None,
        answer: Callable[[BaseException, str], RawResponse] = problem_response,
    ) -> None:
        self._app = app
        self._access_log = access_log
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, also when a route raises or is cancelled."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        plain_path(scope)
        trace_id = give_trace_id(scope)
        status = body_bytes = 0

        async def send_traced(message: Message) -> None:
            nonlocal status, body_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (TRACE_HEADER, trace_id.encode())]
                message = {**message, "headers": headers}
            else:
                body_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_traced)
        except ClientDisconnect:
            status = status or CLIENT_GONE
        except asyncio.CancelledError:
            if status:
                raise  # a stream is cut; its reader resumes elsewhere
            await self._answer(Unavailable(SHUTTING_DOWN), trace_id).send(send_traced)
        except Exception as error:
            response = self._answer(error, trace_id)
            if status:
                raise  # an answer has begun, so only closing the connection shows the failure
            await response.send(send_traced)
        took = time.perf_counter() - began
        route = _route_of(scope)
        metrics.answered(scope["method"], route, status or 500, took)
        if self._access_log is not None:
            self._access_log.write(scope, route, status or 500, took, body_bytes)


def plain_path(scope: Scope) -> str:
    """Remove trailing slashes from a request's path, and return it."""
    path: str = scope["path"]
    if path.endswith("/") and path != "/":
        path = scope["path"] = path.rstrip("/") or "/"
    return path


def give_trace_id(scope: Scope) -> str:
    """Take the trace id of a W3C traceparent, or make one, and store it in the request's scope."""
    found = None
    for name, value in scope["headers"]:
        if name == b"traceparent":
            found = TRACEPARENT.fullmatch(value)
            break
    trace_id: str = found[1].decode() if found else new_trace_id()
    scope.setdefault("state", {})["trace_id"] = trace_id
    return trace_id


def new_trace_id() -> str:
    """Make a trace id for a request that has none."""
    return f"{random.getrandbits(128) or 1:032x}"


def trace_id_in(scope: Scope) -> str:
    """Return the trace id of a request."""
    return str(scope.get("state", {}).get("trace_id", ""))


def _route_of(scope: Scope) -> str:
    """Return the route's template, never the path: clients must not be able to add labels."""
    route: Any = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", UNMATCHED))
