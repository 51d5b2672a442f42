"""`POST /{ws}/jobs` and `/{ws}/jobs/batch`, and what all routes that create work have in common.

The two routes read the raw body, validate it with a compiled schema and write the answer as text;
`ade.http.fast_path` calls them before FastAPI's machinery runs. They are declared in the router as
well, for the OpenAPI document. What arrives together is committed together
(`ade.store.group_commit`).
"""

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope

from ade.app.job_requests import Caller
from ade.app.request_schemas import BatchRequest, JobRequest, RunRequest
from ade.app.submission import Answer, ClientRequest, PreparedSubmission
from ade.http.auth import Authorization, Role, WorkspaceName
from ade.http.batch import JobTemplate, batch_text
from ade.http.body import read_body
from ade.http.context import AppContext
from ade.http.fast_path import FastRoute
from ade.http.middleware import trace_id_in
from ade.http.openapi import answers, headers_taken, takes
from ade.http.preferences import preferences_of
from ade.http.responses import RawResponse
from ade.http.schemas.jobs import Batch, Job
from ade.http.views import JobView
from ade.stages.submit.model import Accepted

BATCH_BODIES_MAX = 32
REPLAYED = (b"idempotency-replayed", b"true")
IDEMPOTENCY = "a key for this request: the same key gives the same response for a day"
WAIT = (
    "`wait=n`: answer when the job has ended, after at most n seconds (at most 60);"
    " with `return=representation` its result is included as `result`"
)
LOCATION = {"headers": {"Location": {"description": "the job", "schema": {"type": "string"}}}}
REFUSALS = (400, 403, 404, 409, 413, 415, 422, 429)
# A route that repeats earlier work needs no body, so it accepts any content type.
REPEAT_REFUSALS = (400, 403, 404, 409, 413, 422, 429)


def client_request(
    scope: Scope, auth: Authorization, endpoint: str, body: bytes = b""
) -> ClientRequest:
    """Describe a request that creates work to the submission service."""
    preferences = preferences_of(scope)
    return ClientRequest(
        caller=caller_of(auth),
        endpoint=endpoint,
        body=body,
        idempotency_key=preferences.idempotency_key,
        wait_seconds=preferences.wait_seconds,
        wants_result=preferences.wants_result,
    )


def caller_of(auth: Authorization) -> Caller:
    """Return who sends the request, as the submission service identifies them."""
    return Caller(auth.workspace.id, auth.user_id)


def response_of(request: ClientRequest, answer: Answer) -> RawResponse:
    """Turn the service's answer into an HTTP response."""
    headers = [(b"location", answer.location.encode())]
    if answer.is_replayed:
        headers.append(REPLAYED)
    if answer.has_waited:
        applied = b"wait=%d" % request.wait_seconds
        if request.wants_result:
            applied += b", return=representation"
        headers.append((b"preference-applied", applied))
    return RawResponse(answer.status, answer.body.encode(), tuple(headers))


class JobSubmissions:
    """Answer the routes that take jobs of the execution contract."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._body_bytes_max = context.settings.payload_max_kb * 1024

    async def submit_one(self, scope: Scope, receive: Receive, workspace: str) -> RawResponse:
        """Submit one job."""
        auth = await self._context.authenticator.authorize(scope, workspace, Role.EDITOR)
        return await self.submit_as(scope, receive, auth)

    async def submit_as(
        self, scope: Scope, receive: Receive, auth: Authorization, target_id: str | None = None
    ) -> RawResponse:
        """Submit one job for an authorized client, on a target if one is named."""
        context = self._context
        body = await read_body(scope, receive, self._body_bytes_max)
        endpoint = "POST jobs" if target_id is None else f"POST targets/{target_id}/jobs"
        request = client_request(scope, auth, endpoint, body)

        async def prepare() -> PreparedSubmission:
            parsed = context.job_requests.parse(body)
            submission = await context.submissions.submission_of(request.caller, parsed, target_id)
            return PreparedSubmission(submission, JobView(context, auth))

        return response_of(request, await context.submissions.submit(request, prepare))

    async def submit_batch(self, scope: Scope, receive: Receive, workspace: str) -> RawResponse:
        """Submit many jobs in one transaction; each is accepted or refused by itself."""
        context = self._context
        auth = await context.authenticator.authorize(scope, workspace, Role.EDITOR)
        body = await read_body(scope, receive, self._body_bytes_max * BATCH_BODIES_MAX)
        request = client_request(scope, auth, "POST jobs/batch")
        items = context.job_requests.parse_batch(body)
        del body  # megabytes that another request can use while this one waits
        outcomes = await context.submissions.submit_batch(request, items, JobView(context, auth))
        template = JobTemplate(auth.workspace.slug, safe_mode=context.safe_mode)
        text = batch_text(outcomes, template, trace_id_in(scope))
        accepted = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
        is_replayed = accepted and all(one.replayed is not None for one in accepted)
        headers = (REPLAYED,) if is_replayed else ()
        return RawResponse(207, text.encode(), headers)


def fast_routes(submissions: JobSubmissions) -> dict[str, FastRoute]:
    """Return the routes of the fast path, by their path below the workspace."""
    return {"jobs": submissions.submit_one, "jobs/batch": submissions.submit_batch}


def submission_routes(submissions: JobSubmissions) -> APIRouter:
    """Declare the routes that submit jobs."""
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
        """Submit a job of the execution contract, or a run of a configuration version."""
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
