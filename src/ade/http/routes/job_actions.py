"""`/{ws}/jobs/{id}/cancel|interrupt|resume|retry`: what a person may do with a job."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter

from ade.app.run_requests import RUN_KIND
from ade.app.submission import PreparedSubmission
from ade.domain.agent_pool import is_agent_pool
from ade.domain.errors import NotFinished, NotFound
from ade.domain.job import StopRequest
from ade.http.auth import Authorization
from ade.http.body import read_small, read_unused_body
from ade.http.context import NO_JOB, AppContext, job_ref
from ade.http.openapi import answers, headers_taken, takes
from ade.http.responses import json_response
from ade.http.routes.submissions import (
    IDEMPOTENCY,
    LOCATION,
    REPEAT_REFUSALS,
    WAIT,
    client_request,
    response_of,
)
from ade.http.schemas.jobs import ENDED, Job, ReasonRequest, Retried, job_body
from ade.http.views import RetryView
from ade.stages.resume import Resume
from ade.stages.stop import Stop
from ade.store.port import Reading
from ade.store.rows import JobRef, JobRow

_REASON = TypeAdapter(ReasonRequest)
RERUNS_COUNTED_MAX = 1000


async def stop_job(
    context: AppContext, auth: Authorization, job_id: str, request: StopRequest, reason: str | None
) -> Response:
    """Cancel or pause a job and return it; a running one stops a little later."""
    action = Stop(job_ref(auth, job_id), request, auth.user_id, reason)
    return show(context, auth, await context.kernel.stop(action))


async def resume_job(context: AppContext, auth: Authorization, job_id: str) -> Response:
    """Queue a stopped job again."""
    action = Resume(job_ref(auth, job_id), auth.user_id, operator=auth.principal.operator)
    return show(context, auth, await context.kernel.resume(action))


def show(context: AppContext, auth: Authorization, job: JobRow) -> Response:
    """Respond with a job."""
    return json_response(job_body(job, auth.workspace.slug, safe_mode=context.safe_mode))


async def reason_in(request: Request) -> str | None:
    """Read the reason that the client gives, if any."""
    return (await read_small(request, _REASON, empty=b"{}")).reason


def job_action_routes(context: AppContext) -> APIRouter:
    """Make the routes that change jobs."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs/{job_id}", tags=["jobs"])
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    described: dict[str, Any] = {
        "responses": answers(200, Job, "The job", 403, 404, 409, 413, 415, 422),
        "openapi_extra": takes(ReasonRequest, required=False),
    }

    @router.post("/cancel", **described)
    async def cancel_job(request: Request, auth: Editor, job_id: str) -> Response:
        """Cancel a job: at once before it starts, by request to its worker while it runs."""
        reason = await reason_in(request)
        return await stop_job(context, auth, job_id, StopRequest.CANCEL, reason)

    @router.post("/interrupt", **described)
    async def interrupt_job(request: Request, auth: Editor, job_id: str) -> Response:
        """Pause a job; `resume` lets it wait again."""
        reason = await reason_in(request)
        return await stop_job(context, auth, job_id, StopRequest.PAUSE, reason)

    @router.post("/resume", responses=answers(200, Job, "The job", 403, 404, 409))
    async def resume_paused_job(auth: Editor, job_id: str) -> Response:
        """Queue a paused job again, or one that failed on its target."""
        return await resume_job(context, auth, job_id)

    @router.post(
        "/retry",
        status_code=202,
        responses={
            **answers(202, Retried, "Runs again", *REPEAT_REFUSALS, **LOCATION),
            **answers(200, Retried, "Ended within the time to wait", **LOCATION),
        },
        openapi_extra={"parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT)},
    )
    async def retry_job(request: Request, auth: Editor, job_id: str) -> Response:
        """Run an ended job again, as a new job that remembers the old one."""
        body = await read_unused_body(request)
        submitted = client_request(request.scope, auth, f"POST jobs/{job_id.lower()}/retry", body)

        async def prepare() -> PreparedSubmission:
            ref = job_ref(auth, job_id)
            earlier, payload, runs = await context.kernel.read(lambda r: _read_for_retry(r, ref))
            if earlier.kind == RUN_KIND:
                submission = await context.run_requests.repeat(submitted.caller, earlier, payload)
            else:
                submission = context.job_requests.repeat(earlier, payload, submitted.caller)
                if is_agent_pool(earlier.pool):
                    known = await context.kernel.read(lambda r: r.agent_jobs.find(earlier.id))
                    submission = submission._replace(job_name=known.job_name if known else "")
            return PreparedSubmission(submission, RetryView(context, auth, ref.id, runs + 1))

        return response_of(
            submitted, await context.submissions.submit(submitted, prepare)
        ).as_response()

    return router


def _read_for_retry(reading: Reading, ref: JobRef) -> tuple[JobRow, str, int]:
    job, payload = reading.read_job(ref), reading.read_payload(ref)
    if job is None or payload is None:
        raise NotFound(NO_JOB)
    if job.status not in ENDED:
        raise NotFinished(f"The job is {job.status}; only a job that has ended can be retried.")
    runs, before = 1, job.rerun_of
    while before is not None and runs < RERUNS_COUNTED_MAX:
        runs += 1
        earlier = reading.read_job(JobRef(ref.workspace_id, before))
        before = earlier.rerun_of if earlier else None
    return job, payload, runs
