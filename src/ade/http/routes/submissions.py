"""The routes that take jobs in, as the router and the OpenAPI document know them.

`ade.http.hot` answers these paths before the router is asked; the functions here do the same.
"""

from fastapi import APIRouter, Request, Response

from ade.app.request_schemas import BatchRequest, JobRequest, RunRequest
from ade.http.auth import WorkspaceName
from ade.http.hot import HotRoute
from ade.http.openapi import answers, headers_taken, takes
from ade.http.schemas.jobs import Batch, Job
from ade.http.submissions import JobSubmissions

IDEMPOTENCY = "a name for this request: the same one gives the same answer for a day"
WAIT = (
    "`wait=n`: answer when the job has ended, after at most n seconds (at most 60);"
    " with `return=representation` its result comes along as `result`"
)
LOCATION = {"headers": {"Location": {"description": "the job", "schema": {"type": "string"}}}}
REFUSALS = (400, 403, 404, 409, 413, 415, 422, 429)
# A route that repeats earlier work needs no body, so it accepts any content type.
REPEAT_REFUSALS = (400, 403, 404, 409, 413, 422, 429)


def hot_routes(submissions: JobSubmissions) -> dict[str, HotRoute]:
    """Name the routes that are answered past the router, by their path below the workspace."""
    return {"jobs": submissions.submit_one, "jobs/batch": submissions.submit_batch}


def submission_routes(submissions: JobSubmissions) -> APIRouter:
    """Declare the routes that take jobs in."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs", tags=["jobs"])

    @router.post(
        "",
        status_code=202,
        responses={
            **answers(202, Job, "Accepted, or joined to a live job", *REFUSALS, **LOCATION),
            **answers(200, Job, "Known already, or ended within the time to wait", **LOCATION),
        },
        openapi_extra={
            **takes(JobRequest, RunRequest),
            "parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT),
        },
    )
    async def submit_job(request: Request, ws: WorkspaceName) -> Response:
        """Ask for a job: the execution contract, or a run of a configuration version."""
        return (await submissions.submit_one(request.scope, request.receive, ws)).as_response()

    @router.post(
        "/batch",
        status_code=207,
        responses=answers(207, Batch, "What came of each job", 403, 404, 413, 415, 422),
        openapi_extra={
            **takes(BatchRequest),
            "parameters": headers_taken(Idempotency_Key=IDEMPOTENCY),
        },
    )
    async def submit_batch(request: Request, ws: WorkspaceName) -> Response:
        """Submit many jobs and runs in one transaction; each is accepted or refused by itself."""
        return (await submissions.submit_batch(request.scope, request.receive, ws)).as_response()

    return router
