"""`/{ws}/jobs/{id}/cancel|interrupt|resume|retry`: what a person may do with a job."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter

from ade.app.run_requests import RUN_KIND
from ade.app.submission import Prepared
from ade.domain.errors import NotFinished, NotFound
from ade.domain.job import StopRequest
from ade.http.auth import Grant
from ade.http.body import read_small, read_unused_body
from ade.http.door import NO_JOB, Door, job_ref
from ade.http.openapi import answers, headers_taken, takes
from ade.http.routes.submissions import IDEMPOTENCY, LOCATION, REPEAT_REFUSALS, WAIT
from ade.http.schemas.base import json_response
from ade.http.schemas.jobs import ENDED, Job, ReasonRequest, Retried, job_body
from ade.http.submissions import client_request, reply_with
from ade.http.views import RetryView
from ade.stages.resume import Resume
from ade.stages.stop import Stop
from ade.store.port import Reading
from ade.store.rows import JobRef, JobRow

_REASON = TypeAdapter(ReasonRequest)
RERUNS_COUNTED_MAX = 1000


async def stop_job(
    door: Door, grant: Grant, job_id: str, request: StopRequest, reason: str | None
) -> Response:
    """Cancel or pause a job and show what it is then; a running one stops a little later."""
    ask = Stop(job_ref(grant, job_id), request, grant.user_id, reason)
    return show(door, grant, await door.kernel.stop(ask))


async def resume_job(door: Door, grant: Grant, job_id: str) -> Response:
    """Queue a stopped job again."""
    ask = Resume(job_ref(grant, job_id), grant.user_id, operator=grant.principal.operator)
    return show(door, grant, await door.kernel.resume(ask))


def show(door: Door, grant: Grant, job: JobRow) -> Response:
    """Answer with a job."""
    return json_response(job_body(job, grant.workspace.slug, safe_mode=door.safe_mode))


async def reason_in(request: Request) -> str | None:
    """Read why someone does something, if they say."""
    return (await read_small(request, _REASON, empty=b"{}")).reason


def verb_routes(door: Door) -> APIRouter:
    """Make the routes that change jobs."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs/{job_id}", tags=["jobs"])
    Editor = Annotated[Grant, Depends(door.gatekeeper.editor)]
    described: dict[str, Any] = {
        "responses": answers(200, Job, "The job", 403, 404, 409, 413, 415, 422),
        "openapi_extra": takes(ReasonRequest, required=False),
    }

    @router.post("/cancel", **described)
    async def cancel_job(request: Request, grant: Editor, job_id: str) -> Response:
        """Cancel a job: at once before it starts, by request to its worker while it runs."""
        reason = await reason_in(request)
        return await stop_job(door, grant, job_id, StopRequest.CANCEL, reason)

    @router.post("/interrupt", **described)
    async def interrupt_job(request: Request, grant: Editor, job_id: str) -> Response:
        """Pause a job; `resume` lets it wait again."""
        reason = await reason_in(request)
        return await stop_job(door, grant, job_id, StopRequest.PAUSE, reason)

    @router.post("/resume", responses=answers(200, Job, "The job", 403, 404, 409))
    async def resume_paused_job(grant: Editor, job_id: str) -> Response:
        """Queue a paused job again, or one that failed on its target."""
        return await resume_job(door, grant, job_id)

    @router.post(
        "/retry",
        status_code=202,
        responses={
            **answers(202, Retried, "Runs again", *REPEAT_REFUSALS, **LOCATION),
            **answers(200, Retried, "Ended within the time to wait", **LOCATION),
        },
        openapi_extra={"parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT)},
    )
    async def retry_job(request: Request, grant: Editor, job_id: str) -> Response:
        """Run an ended job again, as a new job that remembers the old one."""
        body = await read_unused_body(request)
        asked = client_request(request.scope, grant, f"POST jobs/{job_id.lower()}/retry", body)

        async def prepare() -> Prepared:
            ref = job_ref(grant, job_id)
            earlier, payload, runs = await door.kernel.read(lambda r: _read_for_retry(r, ref))
            if earlier.kind == RUN_KIND:
                run = await door.run_requests.repeat(asked.caller, earlier, payload)
                submission = run.submission
            else:
                submission = door.job_requests.repeat(earlier, payload, asked.caller)
            return Prepared(submission, RetryView(door, grant, ref.id, runs + 1))

        return reply_with(asked, await door.submissions.submit(asked, prepare)).as_response()

    return router


def _read_for_retry(reading: Reading, ref: JobRef) -> tuple[JobRow, str, int]:
    job, payload = reading.read_job(ref), reading.read_payload(ref)
    if job is None or payload is None:
        raise NotFound(NO_JOB)
    if job.status not in ENDED:
        raise NotFinished(f"The job is {job.status}; only one that has ended is run again.")
    runs, before = 1, job.rerun_of
    while before is not None and runs < RERUNS_COUNTED_MAX:
        runs += 1
        earlier = reading.read_job(JobRef(ref.workspace_id, before))
        before = earlier.rerun_of if earlier else None
    return job, payload, runs
