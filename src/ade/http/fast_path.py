"""The fast path: the routes that submit jobs are called before FastAPI is.

They are declared in the router too, for the OpenAPI document. What FastAPI would do for them
(middleware, routing, dependencies, response models) costs more than making the answer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ade.domain.errors import Unavailable
from ade.http.middleware import CLIENT_GONE, SHUTTING_DOWN, TRACE_HEADER, give_trace_id, plain_path
from ade.http.problems import problem_response
from ade.http.responses import RawResponse
from ade.telemetry import metrics

WORKSPACES = "/api/v1/workspaces/"
FastRoute = Callable[[Scope, Receive, str], Awaitable[RawResponse]]


class Application(FastAPI):
    """A FastAPI app with a fast path for some routes, by their path below the workspace."""

    fast_routes: dict[str, FastRoute]
    # Call it when the server begins to drain: requests that wait for their jobs are answered.
    drain: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call a route of the fast path here, and leave the rest to FastAPI."""
        if scope["type"] == "http" and scope["method"] == "POST":
            path = plain_path(scope)
            if path.startswith(WORKSPACES):
                workspace, _, rest = path[len(WORKSPACES) :].partition("/")
                route = self.fast_routes.get(rest)
                if route is not None and workspace:
                    await _answer(
                        route, f"{WORKSPACES}{{ws}}/{rest}", workspace, scope, receive, send
                    )
                    return
        await super().__call__(scope, receive, send)


async def _answer(
    route: FastRoute, name: str, workspace: str, scope: Scope, receive: Receive, send: Send
) -> None:
    began = time.perf_counter()
    trace_id = give_trace_id(scope)
    status = CLIENT_GONE
    try:
        response = await route(scope, receive, workspace)
    except ClientDisconnect:
        response = None
    except asyncio.CancelledError:
        response = problem_response(Unavailable(SHUTTING_DOWN), trace_id)
    except Exception as error:
        response = problem_response(error, trace_id)
    if response is not None:
        status = response.status
        await response.send(send, (TRACE_HEADER, trace_id.encode()))
    metrics.answered("POST", name, status, time.perf_counter() - began)
