"""`/status/{id}`, `/job-info/{id}`, `/jobs`, `/queue`: what the worker contract shows of jobs."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ade.app.agent_views import (
    job_info_body,
    listed_body,
    pool_of,
    queue_entry,
    shown_job,
    status_body,
)
from ade.domain.errors import NotFound
from ade.domain.vocabulary import AgentStatus
from ade.http.contract.callers import ContractCaller
from ade.http.contract.context import ContractContext, find_job
from ade.http.paging import cursor_after, read_cursor
from ade.http.query import check_parameters
from ade.http.responses import json_response
from ade.store.port import Reading
from ade.store.rows import AgentJob

JOBS_PER_PAGE = 500
PAGE_MAX = 1000
QUEUE_MAX = 10_000
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="jobs of a page")]
Cursor = Annotated[str | None, Query(max_length=200, description="where the page begins")]


def job_routes(context: ContractContext) -> APIRouter:
    """Make the routes that show jobs."""
    router = APIRouter(tags=["jobs"])
    kernel = context.kernel

    @router.get("/status/{job_id}")
    async def read_status(request: Request, job_id: str) -> Response:
        """Show the status of a job; 404 with the status `not_found` if there is none."""
        caller = await context.callers.caller(request.scope)
        try:
            found = await context.job(caller, job_id)
        except NotFound as error:
            unknown = {
                "detail": error.detail,
                "code": error.code,
                "job_id": job_id,
                "status": AgentStatus.NOT_FOUND.value,
            }
            return json_response(unknown, 404)
        return json_response(status_body(found))

    @router.get("/job-info/{job_id}")
    async def read_job_info(request: Request, job_id: str) -> Response:
        """Show what a job is, and what its worker said of the container."""
        caller = await context.callers.caller(request.scope)
        found = await context.job(caller, job_id)
        return json_response(
            await kernel.read(lambda reading: job_info_body(shown_job(reading, found)))
        )

    @router.get("/jobs")
    async def list_jobs(
        request: Request, limit: Limit = JOBS_PER_PAGE, cursor: Cursor = None
    ) -> Response:
        """List jobs, newest first; a header `Link` with `rel="next"` names the next page."""
        caller = await context.callers.caller(request.scope)
        check_parameters(request)
        if caller.name is not None:
            held = await kernel.read(lambda reading: _held(reading, caller))
            return json_response(held)
        workspace = await context.workspace(caller)
        before = read_cursor(cursor)

        def look(reading: Reading) -> list[dict[str, Any]]:
            page = reading.agent_jobs.page(workspace.id, before, limit + 1)
            return _listed(reading, page)

        found = await kernel.read(look)
        headers = {}
        if len(found) > limit:
            del found[limit:]
            after = cursor_after(found[-1]["job_id"])
            headers["Link"] = f'</jobs?limit={limit}&cursor={after}>; rel="next"'
        return json_response(found, headers=headers)

    @router.get("/queue")
    async def list_queue(request: Request) -> Response:
        """List the jobs that wait for a worker in the order of the queue, 10000 at most."""
        caller = await context.callers.caller(request.scope)
        check_parameters(request)
        workspace = await context.workspace(caller)

        def look(reading: Reading) -> list[dict[str, Any]]:
            pools = _Pools(reading)
            waiting = reading.agent_jobs.waiting(workspace.id, QUEUE_MAX)
            return [queue_entry(found.job.id, pools.of(found)) for found in waiting]

        return json_response(await kernel.read(look))

    return router


class _Pools:
    """Look up what jobs ask for, once for all jobs of a pool."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[str, Any] = {}

    def of(self, found: AgentJob) -> Any:
        """Return the pool of a job."""
        name = found.known.pool
        if name not in self._known:
            self._known[name] = pool_of(self._reading, found)
        return self._known[name]


def _listed(reading: Reading, page: list[AgentJob]) -> list[dict[str, Any]]:
    pools = _Pools(reading)
    return [listed_body(found, pools.of(found)) for found in page]


def _held(reading: Reading, caller: ContractCaller) -> list[dict[str, Any]]:
    """List the jobs that an agent holds: it sees no others."""
    ids = [job.id for job in reading.agent_jobs.held() if job.lease_owner == caller.name]
    found = (find_job(reading, job_id) for job_id in sorted(ids, reverse=True))
    return _listed(reading, [one for one in found if one is not None])
