"""`/{ws}/targets`: serial lanes, and what a person decides about a blocked one."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import StringConstraints, TypeAdapter

from ade.app.request_schemas import JobRequest
from ade.domain.errors import InvalidRequest, NotFound
from ade.domain.job import BLOCKS_ITS_LANE, Status, StopRequest
from ade.http.auth import Authorization
from ade.http.body import read_small
from ade.http.context import NO_JOB, AppContext
from ade.http.job_filters import NONE, VALUES_MAX, any_of
from ade.http.openapi import answers, headers_taken, takes
from ade.http.responses import json_response
from ade.http.routes.job_actions import reason_in, resume_job, show, stop_job
from ade.http.routes.jobs import list_page
from ade.http.routes.submissions import IDEMPOTENCY, LOCATION, REFUSALS, WAIT, JobSubmissions
from ade.http.schemas.jobs import (
    Job,
    JobPage,
    NoteRequest,
    ReasonRequest,
    ResolveRequest,
    Target,
    job_body,
)
from ade.stages.resume import Clear, Resolve
from ade.store.port import Reading
from ade.store.rows import JobRef, JobRow, Lane

QUEUED_COUNTED_MAX = 10_000
_RESOLVE = TypeAdapter(ResolveRequest)
_NOTE = TypeAdapter(NoteRequest)
TargetId = Annotated[str, Path(min_length=1, max_length=200, description="the lane's name")]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def target_routes(context: AppContext, submissions: JobSubmissions) -> APIRouter:
    """Make the routes of targets."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/targets/{target_id}", tags=["targets"])
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=context.settings.page_size_max)]
    stopped: dict[str, Any] = {
        "responses": answers(200, Job, "The job", 403, 404, 409, 413, 415, 422),
        "openapi_extra": takes(ReasonRequest, required=False),
    }

    async def check(auth: Authorization, target_id: str, job_id: str) -> JobRef:
        job = await context.job(auth, job_id)
        if job.target_id != target_id:
            raise NotFound(NO_JOB)
        return JobRef(job.workspace_id, job.id)

    @router.get("", responses=answers(200, Target, "The lane", 404, 422))
    async def read_target(auth: Viewer, target_id: TargetId) -> Response:
        """Read which job holds the lane and how many wait; an unused lane is free."""
        lane = Lane(auth.workspace.id, _without_nul(target_id))

        def look(reading: Reading) -> tuple[list[JobRow], int]:
            return reading.lane_holders(lane), reading.count_lane(lane, QUEUED_COUNTED_MAX)

        holders, queued = await context.kernel.read(look)
        return json_response(_target_body(context, auth, target_id, holders, queued))

    @router.get("/jobs", responses=answers(200, JobPage, "Jobs, newest first", 404, 422))
    async def list_target_jobs(
        auth: Viewer,
        target_id: TargetId,
        status: Annotated[list[Status], Query(max_length=VALUES_MAX)] = NONE,
        limit: Limit = None,
        cursor: Cursor | None = None,
    ) -> Response:
        """List the jobs of a lane, newest first."""
        filters = {"target_id": target_id, **any_of("status", status)}
        return await list_page(context, auth, filters, limit, cursor)

    @router.post(
        "/jobs",
        status_code=202,
        responses={
            **answers(202, Job, "Accepted", *REFUSALS, **LOCATION),
            **answers(200, Job, "Ended within the time to wait", **LOCATION),
        },
        openapi_extra={
            **takes(JobRequest),
            "parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT),
        },
    )
    async def submit_on_target(request: Request, auth: Editor, target_id: TargetId) -> Response:
        """Submit a job on this lane: it starts when those before it have succeeded."""
        lane = _without_nul(target_id)
        response = await submissions.submit_as(request.scope, request.receive, auth, lane)
        return response.as_response()

    @router.post("/jobs/{job_id}/cancel", **stopped)
    async def cancel_on_target(
        request: Request, auth: Editor, target_id: TargetId, job_id: str
    ) -> Response:
        """Cancel a job of the lane; the next one may start."""
        ref = await check(auth, target_id, job_id)
        reason = await reason_in(request)
        return await stop_job(context, auth, ref.id, StopRequest.CANCEL, reason)

    @router.post("/jobs/{job_id}/interrupt", **stopped)
    async def interrupt_on_target(
        request: Request, auth: Editor, target_id: TargetId, job_id: str
    ) -> Response:
        """Pause a job of the lane; it holds the lane until someone decides."""
        ref = await check(auth, target_id, job_id)
        reason = await reason_in(request)
        return await stop_job(context, auth, ref.id, StopRequest.PAUSE, reason)

    @router.post(
        "/jobs/{job_id}/resume", responses=answers(200, Job, "The job", 403, 404, 409, 422)
    )
    async def resume_on_target(auth: Editor, target_id: TargetId, job_id: str) -> Response:
        """Queue a paused or failed job of the lane again."""
        return await resume_job(context, auth, (await check(auth, target_id, job_id)).id)

    @router.post(
        "/jobs/{job_id}/resolve",
        responses=answers(200, Job, "The job", 403, 404, 409, 413, 415, 422),
        openapi_extra=takes(ResolveRequest),
    )
    async def resolve_on_target(
        request: Request, auth: Editor, target_id: TargetId, job_id: str
    ) -> Response:
        """Record a result that a person found; the job counts as succeeded and frees the lane."""
        ref = await check(auth, target_id, job_id)
        body = await read_small(request, _RESOLVE)
        result = {"outputs": {"result_json": body.result}, "artifacts": [], "logs": []}
        resolve = Resolve(ref, auth.user_id, result, body.note)
        return show(context, auth, await context.kernel.resolve(resolve))

    @router.post(
        "/jobs/{job_id}/clear",
        responses=answers(200, Job, "The job", 403, 404, 409, 413, 415, 422),
        openapi_extra=takes(NoteRequest, required=False),
    )
    async def clear_on_target(
        request: Request, auth: Editor, target_id: TargetId, job_id: str
    ) -> Response:
        """Free the lane without a result; the job stays as it ended."""
        ref = await check(auth, target_id, job_id)
        body = await read_small(request, _NOTE, empty=b"{}")
        return show(context, auth, await context.kernel.clear(Clear(ref, auth.user_id, body.note)))

    return router


def _without_nul(target_id: str) -> str:
    if "\0" in target_id:
        raise InvalidRequest("target_id: it holds the character NUL.")
    return target_id


def _target_body(
    context: AppContext, auth: Authorization, target_id: str, holders: list[JobRow], queued: int
) -> Target:
    def body(job: JobRow) -> Job:
        return job_body(job, auth.workspace.slug, safe_mode=context.safe_mode)

    blocking = [job for job in holders if Status(job.status) in BLOCKS_ITS_LANE]
    running = next((job for job in holders if job.status == Status.RUNNING), None)
    return {
        "target_id": target_id,
        "queue_status": "paused" if blocking else "running",
        "blocking_jobs": [body(job) for job in blocking],
        "running_job": None if running is None else body(running),
        "queued": queued,
    }
