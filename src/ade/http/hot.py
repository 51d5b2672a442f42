"""The short way in: the routes that take jobs are answered before FastAPI is asked.

They are declared in the router too, for the OpenAPI document; what FastAPI would do for them on the
way (its middleware, routing, dependencies, response models) costs more than the answer itself.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ade.domain.errors import Unavailable
from ade.http.edge import CLIENT_GONE, SHUTTING_DOWN, TRACE_HEADER, give_trace_id, plain_path
from ade.http.problems import reply_to
from ade.http.reply import Reply
from ade.telemetry import metrics

WORKSPACES = "/api/v1/workspaces/"
HotRoute = Callable[[Scope, Receive, str], Awaitable[Reply]]


class HotApp(FastAPI):
    """A FastAPI app with a short way in, by the path below the workspace."""

    hot: dict[str, HotRoute]
    # Call it when the server begins to drain: requests that wait for their jobs are answered.
    drain: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a hot route here, and leave the rest to FastAPI."""
        if scope["type"] == "http" and scope["method"] == "POST":
            path = plain_path(scope)
            if path.startswith(WORKSPACES):
                workspace, _, rest = path[len(WORKSPACES) :].partition("/")
                route = self.hot.get(rest)
                if route is not None and workspace:
                    await _answer(
                        route, f"{WORKSPACES}{{ws}}/{rest}", workspace, scope, receive, send
                    )
                    return
        await super().__call__(scope, receive, send)


async def _answer(
    route: HotRoute, name: str, workspace: str, scope: Scope, receive: Receive, send: Send
) -> None:
    began = time.perf_counter()
    trace_id = give_trace_id(scope)
    status = CLIENT_GONE
    try:
        reply = await route(scope, receive, workspace)
    except ClientDisconnect:
        reply = None
    except asyncio.CancelledError:
        reply = reply_to(Unavailable(SHUTTING_DOWN), trace_id)
    except Exception as error:
        reply = reply_to(error, trace_id)
    if reply is not None:
        status = reply.status
        await reply.send(send, (TRACE_HEADER, trace_id.encode()))
    metrics.answered("POST", name, status, time.perf_counter() - began)
