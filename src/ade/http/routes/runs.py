"""`/{ws}/runs`: runs of configurations on documents; each is also a job."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import StringConstraints, TypeAdapter

from ade.app.run_requests import RUN_KIND
from ade.app.submission import ClientRequest, PreparedSubmission
from ade.domain.errors import NotFinished, NotFound
from ade.domain.evaluation import Evaluation
from ade.domain.job import StopRequest
from ade.domain.vocabulary import RunStatus, run_status, statuses_of_run
from ade.http.auth import Authorization
from ade.http.body import SMALL_BODY_BYTES_MAX, parse, read_body, read_unused_body
from ade.http.context import AppContext, job_ref
from ade.http.job_filters import (
    NONE,
    VALUES_MAX,
    Id,
    Time,
    any_of,
    count_by_status,
    find_page,
    submitted_between,
)
from ade.http.openapi import answers, headers_taken, takes
from ade.http.responses import json_response
from ade.http.routes.job_actions import reason_in
from ade.http.routes.submissions import (
    IDEMPOTENCY,
    LOCATION,
    REFUSALS,
    REPEAT_REFUSALS,
    WAIT,
    client_request,
    response_of,
)
from ade.http.schemas.jobs import ENDED, ReasonRequest
from ade.http.schemas.runs import Run, RunPage, RunStatusCounts, StartRunRequest
from ade.http.views import RunView, current_run, current_runs
from ade.stages.stop import Stop
from ade.stages.submit.model import Submission
from ade.store.rows import JobRow

NO_RUN = "There is no such run in this workspace."
_START = TypeAdapter(StartRunRequest)
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _run_filters(
    status: Annotated[list[RunStatus], Query(max_length=VALUES_MAX)] = NONE,
    evaluation: Annotated[list[Evaluation], Query(max_length=VALUES_MAX)] = NONE,
    configuration_id: Annotated[list[Id], Query(max_length=VALUES_MAX)] = NONE,
    document_id: Annotated[list[Id], Query(max_length=VALUES_MAX)] = NONE,
    created_after: Time | None = None,
    created_before: Time | None = None,
) -> dict[str, Any]:
    return {
        "kind": RUN_KIND,
        **any_of("status", [one for word in status for one in statuses_of_run(word)]),
        **any_of("evaluation", evaluation),
        **any_of("configuration_id", configuration_id),
        **any_of("document_id", document_id),
        **submitted_between(created_after, created_before),
    }


RunFilters = Annotated[dict[str, Any], Depends(_run_filters)]


def run_routes(context: AppContext) -> APIRouter:
    """Make the routes of runs."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}", tags=["runs"])
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=context.settings.page_size_max)]

    async def submit(
        request: ClientRequest, auth: Authorization, prepare: Callable[[], Awaitable[Submission]]
    ) -> Response:
        async def prepare_run() -> PreparedSubmission:
            return PreparedSubmission(await prepare(), RunView(context, auth))

        answer = await context.submissions.submit(request, prepare_run)
        return response_of(request, answer).as_response()

    async def read(auth: Authorization, run_id: str) -> JobRow:
        ref = job_ref(auth, run_id)
        job = await context.kernel.read(lambda reading: reading.read_job(ref))
        if job is None or job.kind != RUN_KIND:
            raise NotFound(NO_RUN)
        return job

    async def shown(auth: Authorization, job: JobRow) -> Response:
        return json_response(await current_run(context, job, auth.workspace.slug))

    @router.post(
        "/configurations/{configuration_id}/runs",
        status_code=202,
        responses={
            **answers(202, Run, "Accepted", *REFUSALS, **LOCATION),
            **answers(200, Run, "Ended within the time to wait", **LOCATION),
        },
        openapi_extra={
            **takes(StartRunRequest, required=True),
            "parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT),
        },
    )
    async def start_run(request: Request, auth: Editor, configuration_id: str) -> Response:
        """Run a configuration on a document.

        It uses the active version, or the draft as long as no version is active. `version` names
        another one: by its number, as `active` or as `draft`.
        """
        body = await read_body(request.scope, request.receive, SMALL_BODY_BYTES_MAX)
        endpoint = f"POST configurations/{configuration_id.lower()}/runs"
        submitted = client_request(request.scope, auth, endpoint, body)

        async def prepare() -> Submission:
            fields = parse(body, _START).model_dump(exclude_none=True)
            return await context.run_requests.of_configuration(
                submitted.caller, configuration_id, fields
            )

        return await submit(submitted, auth, prepare)

    @router.get("/runs", responses=answers(200, RunPage, "Runs, newest first", 404, 422))
    async def list_runs(
        auth: Viewer, filters: RunFilters, limit: Limit = None, cursor: Name | None = None
    ) -> Response:
        """List runs that match all filters, newest first.

        A filter that is given several times matches any of its values.
        """
        page = await find_page(context, auth, filters, limit, cursor)
        found: RunPage = {
            "items": await current_runs(context, page.jobs, auth.workspace.slug),
            "next_cursor": page.next_cursor,
        }
        return json_response(found)

    @router.get("/runs/counts", responses=answers(200, RunStatusCounts, "Counts", 404, 422))
    async def count_runs(auth: Viewer, filters: RunFilters) -> Response:
        """Count the runs that match all filters, by status."""
        counts = dict.fromkeys(RunStatus, 0)
        for status, count in (await count_by_status(context, auth, filters)).items():
            counts[run_status(status)] += count
        found: RunStatusCounts = {"counts": counts, "total": sum(counts.values())}
        return json_response(found)

    @router.get("/runs/{run_id}", responses=answers(200, Run, "The run", 404))
    async def read_run(auth: Viewer, run_id: str) -> Response:
        """Read a run and where its build is."""
        return await shown(auth, await read(auth, run_id))

    @router.post(
        "/runs/{run_id}/cancel",
        responses=answers(200, Run, "The run", 403, 404, 409, 413, 415, 422),
        openapi_extra=takes(ReasonRequest, required=False),
    )
    async def cancel_run(request: Request, auth: Editor, run_id: str) -> Response:
        """Cancel a run: at once before it starts, by request to its worker while it runs."""
        reason = await reason_in(request)
        await read(auth, run_id)
        stop = Stop(job_ref(auth, run_id), StopRequest.CANCEL, auth.user_id, reason)
        return await shown(auth, await context.kernel.stop(stop))

    @router.post(
        "/runs/{run_id}/rerun",
        status_code=202,
        responses={
            **answers(202, Run, "Runs again", *REPEAT_REFUSALS, **LOCATION),
            **answers(200, Run, "Ended within the time to wait", **LOCATION),
        },
        openapi_extra={"parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT)},
    )
    async def rerun(request: Request, auth: Editor, run_id: str) -> Response:
        """Run the same version on the same document again, as a new run."""
        body = await read_unused_body(request)
        submitted = client_request(request.scope, auth, f"POST runs/{run_id.lower()}/rerun", body)

        async def prepare() -> Submission:
            job = await read(auth, run_id)
            if job.status not in ENDED:
                raise NotFinished(f"The run is {job.status}.")
            payload = await context.kernel.read(lambda r: r.read_payload(job_ref(auth, run_id)))
            return await context.run_requests.repeat(submitted.caller, job, payload or "{}")

        return await submit(submitted, auth, prepare)

    return router
