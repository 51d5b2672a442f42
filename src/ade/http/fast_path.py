"""The fast path: the routes that submit jobs, or that agents call all the time, bypass FastAPI.

They are declared in the router too, for the OpenAPI document. What FastAPI would do for them
(middleware, routing, dependencies, response models) costs more than making the answer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ade.app.job_mirror import JobMirror
from ade.domain.errors import Unavailable
from ade.http.access_log import AccessLog
from ade.http.contract.errors import detail_response
from ade.http.contract.paths import is_of_contract
from ade.http.middleware import CLIENT_GONE, SHUTTING_DOWN, TRACE_HEADER, give_trace_id, plain_path
from ade.http.problems import problem_response
from ade.http.responses import RawResponse
from ade.telemetry import metrics

WORKSPACES = "/api/v1/workspaces/"
FastRoute = Callable[[Scope, Receive, str], Awaitable[RawResponse]]
ContractRoute = Callable[[Scope, Receive], Awaitable[RawResponse]]


class Application(FastAPI):
    """A FastAPI app with a fast path for some routes, by their path below the workspace."""

    fast_routes: dict[str, FastRoute]
    access_log: AccessLog | None = None
    # The worker contract has an app of its own, with fast routes by their whole path.
    contract: FastAPI
    # Run it to keep the files of the shared folder in step.
    mirror: JobMirror
    # Call it when the server begins to drain: requests that wait for their jobs are answered.
    drain: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call a route of the fast path here, and leave the rest to the apps."""
        path = plain_path(scope) if scope["type"] == "http" else ""
        if path.startswith(WORKSPACES):
            workspace, _, rest = path[len(WORKSPACES) :].partition("/")
            route = self.fast_routes.get(rest) if scope["method"] == "POST" else None
            if route is not None and workspace:
                name = f"{WORKSPACES}{{ws}}/{rest}"
                await self._call(name, route(scope, receive, workspace), scope, send)
                return
        elif is_of_contract(path):
            routes: dict[str, ContractRoute] = self.contract.state.fast_routes
            if scope["method"] == "POST" and path in routes:
                answering = routes[path](scope, receive)
                await self._call(path, answering, scope, send, detail_response)
            else:
                await self.contract(scope, receive, send)
            return
        await super().__call__(scope, receive, send)

    async def _call(
        self,
        name: str,
        answering: Awaitable[RawResponse],
        scope: Scope,
        send: Send,
        problem: Callable[[BaseException, str], RawResponse] = problem_response,
    ) -> None:
        """Answer a request, and record how long that took."""
        began = time.perf_counter()
        status, size = await _answer(answering, scope, send, problem)
        took = time.perf_counter() - began
        metrics.answered("POST", name, status, took)
        if self.access_log is not None:
            self.access_log.write(scope, name, status, took, size)


async def _answer(
    answering: Awaitable[RawResponse],
    scope: Scope,
    send: Send,
    problem: Callable[[BaseException, str], RawResponse],
) -> tuple[int, int]:
    """Answer a request; return the status and the size of the body."""
    trace_id = give_trace_id(scope)
    try:
        response = await answering
    except ClientDisconnect:
        response = None
    except asyncio.CancelledError:
        response = problem(Unavailable(SHUTTING_DOWN), trace_id)
    except Exception as error:
        response = problem(error, trace_id)
    if response is None:
        return CLIENT_GONE, 0
    await response.send(send, (TRACE_HEADER, trace_id.encode()))
    return response.status, len(response.body)
