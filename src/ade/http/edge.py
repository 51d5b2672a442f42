"""The outermost layer of the app, in plain ASGI: paths, trace ids, times, and the last resort.

Trailing slashes are cut off before anything looks at the path. A request's `traceparent` gives the
trace id, or one is made; every answer carries it. The two routes that take jobs in are answered
from here, past the router; they are declared in it for the OpenAPI document.
"""

import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ade.http.problems import reply_to
from ade.http.reply import Reply
from ade.telemetry import metrics

TRACE_HEADER = b"x-trace-id"
WORKSPACES = "/api/v1/workspaces/"
TRACEPARENT = re.compile(rb"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
UNMATCHED = "unmatched"
CLIENT_GONE = 499

HotRoute = Callable[[Scope, Receive, str], Awaitable[Reply]]


class Edge:
    """Stand between the server and the app."""

    def __init__(self, app: ASGIApp, hot: dict[str, HotRoute]) -> None:
        self._app = app
        self._hot = hot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        path: str = scope["path"]
        if path.endswith("/") and path != "/":
            path = scope["path"] = path.rstrip("/") or "/"
        trace_id = trace_id_of(scope)
        scope.setdefault("state", {})["trace_id"] = trace_id
        if scope["method"] == "POST" and path.startswith(WORKSPACES):
            workspace, _, rest = path[len(WORKSPACES) :].partition("/")
            hot = self._hot.get(rest)
            if hot is not None and workspace:
                reply = await self._answer(hot, scope, receive, workspace, trace_id)
                if reply is not None:
                    await reply.send(send, (TRACE_HEADER, trace_id.encode()))
                took = time.perf_counter() - began
                status = reply.status if reply is not None else CLIENT_GONE
                metrics.answered("POST", f"{WORKSPACES}{{ws}}/{rest}", status, took)
                return
        await self._pass_on(scope, receive, send, trace_id, began)

    async def _answer(
        self, hot: HotRoute, scope: Scope, receive: Receive, workspace: str, trace_id: str
    ) -> Reply | None:
        try:
            return await hot(scope, receive, workspace)
        except ClientDisconnect:
            return None
        except Exception as error:
            return reply_to(error, trace_id)

    async def _pass_on(
        self, scope: Scope, receive: Receive, send: Send, trace_id: str, began: float
    ) -> None:
        status = 0

        async def send_traced(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (TRACE_HEADER, trace_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, send_traced)
        except ClientDisconnect:
            status = status or CLIENT_GONE
        except Exception as error:
            reply = reply_to(error, trace_id)
            if status:
                raise  # an answer has begun: only a broken connection can say that it failed
            await reply.send(send_traced)
        took = time.perf_counter() - began
        metrics.answered(scope["method"], _route_of(scope), status or 500, took)


def trace_id_of(scope: Scope) -> str:
    """Take the trace id of a W3C traceparent, or make one."""
    for name, value in scope["headers"]:
        if name == b"traceparent":
            found = TRACEPARENT.fullmatch(value)
            if found is not None:
                return str(found[1].decode())
            break
    return f"{random.getrandbits(128) or 1:032x}"


def trace_id_in(scope: Scope) -> str:
    """Return the trace id that was given to a request."""
    return str(scope.get("state", {}).get("trace_id", ""))


def _route_of(scope: Scope) -> str:
    """Name the route, never the path: a metric must not grow with what clients think of."""
    route: Any = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", UNMATCHED))
