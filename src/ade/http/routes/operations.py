"""`/api/v1/ops`: what operators see of the workers, and do to jobs, queues and workers."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter

from ade.domain.errors import NotFound
from ade.domain.ids import is_uuid
from ade.domain.queue_pause import PauseScope
from ade.http.auth import Principal
from ade.http.body import read_small
from ade.http.context import NO_JOB, AppContext
from ade.http.openapi import answers, takes
from ade.http.responses import json_response
from ade.http.schemas.jobs import Job, job_body
from ade.http.schemas.operations import (
    DrainRequest,
    ForceRequest,
    PauseBody,
    PausePage,
    PauseRequest,
    ResumeRequest,
    UndrainRequest,
    WorkerPage,
    lease_body,
    pause_body,
    worker_body,
)
from ade.stages.force import Force, OperatorAction
from ade.stages.queue_pauses import PauseQueue
from ade.stages.workers import WORKERS_LISTED_MAX
from ade.store.port import Reading
from ade.store.rows import JobRef, LiveLease, QueuePauseRow, WorkerRow

LEASES_LISTED_MAX = 10_000

_FORCE = TypeAdapter(ForceRequest)
_PAUSE = TypeAdapter(PauseRequest)
_RESUME = TypeAdapter(ResumeRequest)
_DRAIN = TypeAdapter(DrainRequest)
_UNDRAIN = TypeAdapter(UndrainRequest)


def operation_routes(context: AppContext) -> APIRouter:
    """Make the routes of operators."""
    router = APIRouter(prefix="/api/v1/ops", tags=["operations"])
    kernel = context.kernel
    Operator = Annotated[Principal, Depends(context.authenticator.operator)]

    @router.get("/workers", responses=answers(200, WorkerPage, "Workers", 403))
    async def list_workers(operator: Operator) -> WorkerPage:
        """List the workers that are running and the jobs that they hold (operators only)."""
        return _worker_page(*await kernel.read(_read_workers))

    @router.get("/pauses", responses=answers(200, PausePage, "What is paused", 403))
    async def list_pauses(operator: Operator) -> PausePage:
        """List what operators have paused or drained (operators only)."""
        rows = await kernel.read(lambda reading: reading.queue_pauses.list_all())
        return {"items": [pause_body(row) for row in rows], "next_cursor": None}

    async def scope_of(workspace: str | None, kind: str | None) -> PauseScope:
        found = None if workspace is None else await context.directory.find_workspace(workspace)
        if workspace is not None and found is None:
            raise NotFound("There is no such workspace.")
        return PauseScope(found.id if found else None, kind)

    async def pause(scope: PauseScope, operator: Principal, reason: str) -> PauseBody:
        asked = PauseQueue(scope, operator.user_id, reason)
        return pause_body(await kernel.pause_queue(asked))

    @router.post(
        "/pause",
        responses=answers(200, PauseBody, "Paused", 403, 404, 409, 413, 415, 422),
        openapi_extra=takes(PauseRequest),
    )
    async def pause_queue(request: Request, operator: Operator) -> PauseBody:
        """Keep the jobs of a workspace, of a kind or of both from starting (operators only).

        It holds in all processes once the answer is there, and until it is resumed. Jobs that run
        go on, and new ones are accepted and wait.
        """
        body = await read_small(request, _PAUSE)
        scope = await scope_of(body.workspace, body.kind)
        return await pause(scope, operator, body.reason)

    @router.post(
        "/resume",
        status_code=204,
        responses=answers(204, None, "Resumed", 403, 404, 413, 415, 422),
        openapi_extra=takes(ResumeRequest),
    )
    async def resume_queue(request: Request, operator: Operator) -> None:
        """Let the jobs of a paused workspace or kind start again (operators only)."""
        body = await read_small(request, _RESUME)
        await kernel.resume_queue(await scope_of(body.workspace, body.kind))

    @router.post(
        "/drain",
        responses=answers(200, PauseBody, "Drained", 403, 404, 409, 413, 415, 422),
        openapi_extra=takes(DrainRequest),
    )
    async def drain_worker(request: Request, operator: Operator) -> PauseBody:
        """Let a worker or agent take no more jobs; what it runs goes on (operators only)."""
        body = await read_small(request, _DRAIN)
        return await pause(PauseScope(worker=body.worker), operator, body.reason)

    @router.post(
        "/undrain",
        status_code=204,
        responses=answers(204, None, "It may take jobs again", 403, 404, 413, 415, 422),
        openapi_extra=takes(UndrainRequest),
    )
    async def undrain_worker(request: Request, operator: Operator) -> None:
        """Let a worker or agent that was drained take jobs again (operators only)."""
        body = await read_small(request, _UNDRAIN)
        await kernel.resume_queue(PauseScope(worker=body.worker))

    async def change(
        request: Request, operator: Principal, job_id: str, action: OperatorAction
    ) -> Response:
        body = await read_small(request, _FORCE)
        ref = await _ref(context, job_id)
        asked = Force(ref, action, operator.user_id, body.reason, body.force)
        job = await kernel.force(asked)
        workspace = await context.directory.find_workspace(ref.workspace_id)
        slug = workspace.slug if workspace else ref.workspace_id
        return json_response(job_body(job, slug, safe_mode=context.safe_mode))

    described: dict[str, Any] = {
        "responses": answers(200, Job, "The job", 403, 404, 409, 413, 415, 422),
        "openapi_extra": takes(ForceRequest),
    }

    @router.post("/jobs/{job_id}/requeue", **described)
    async def requeue_job(request: Request, operator: Operator, job_id: str) -> Response:
        """Queue a job again, whatever became of it (operators only)."""
        return await change(request, operator, job_id, OperatorAction.REQUEUE)

    @router.post("/jobs/{job_id}/fail", **described)
    async def fail_job(request: Request, operator: Operator, job_id: str) -> Response:
        """Record a job as failed (operators only)."""
        return await change(request, operator, job_id, OperatorAction.FAIL)

    @router.post("/jobs/{job_id}/cancel", **described)
    async def cancel_job_as_operator(request: Request, operator: Operator, job_id: str) -> Response:
        """Record a job as cancelled (operators only)."""
        return await change(request, operator, job_id, OperatorAction.CANCEL)

    return router


async def _ref(context: AppContext, job_id: str) -> JobRef:
    """Find a job by its id alone, or raise NotFound."""
    found = None
    if is_uuid(job_id):
        found = await context.kernel.read(lambda r: r.find_workspace_of_job(job_id.lower()))
    if found is None:
        raise NotFound(NO_JOB)
    return JobRef(found, job_id.lower())


def _read_workers(
    reading: Reading,
) -> tuple[list[WorkerRow], list[LiveLease], list[QueuePauseRow]]:
    return (
        reading.list_workers(WORKERS_LISTED_MAX),
        reading.list_leases(LEASES_LISTED_MAX),
        reading.queue_pauses.list_all(),
    )


def _worker_page(
    workers: list[WorkerRow], leases: list[LiveLease], pauses: list[QueuePauseRow]
) -> WorkerPage:
    held: dict[str, list[LiveLease]] = {worker.name: [] for worker in workers}
    others = list[LiveLease]()
    for lease in leases:
        held.get(lease.lease_owner, others).append(lease)
    drained = {pause.worker: pause for pause in pauses}
    return {
        "items": [
            worker_body(worker, held[worker.name], drained.get(worker.name)) for worker in workers
        ],
        "leases_of_others": [lease_body(lease) for lease in others],
        "next_cursor": None,
    }
