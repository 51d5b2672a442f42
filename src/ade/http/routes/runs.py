"""`/{ws}/runs`: runs of configurations on documents; each is also a job."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import StringConstraints, TypeAdapter

from ade.domain.errors import NotFinished, NotFound
from ade.domain.job import StopRequest
from ade.http.auth import Grant
from ade.http.body import read_small
from ade.http.door import Door, job_ref
from ade.http.job_json import ENDED
from ade.http.models import ReasonRequest, Run, RunPage, StartRunRequest
from ade.http.openapi import answers, takes
from ade.http.paging import cursor_after, read_cursor
from ade.http.routes.jobs import PAGE_SIZE
from ade.http.routes.submissions import LOCATION
from ade.http.routes.verbs import reason_in
from ade.http.runs import KIND, Runs, run_json
from ade.stages.stop import Stop
from ade.stages.submit import Submission
from ade.store.rows import Build, JobRow
from ade.telemetry import metrics

JSON = "application/json"
NO_RUN = "There is no such run in this workspace."
_START = TypeAdapter(StartRunRequest)
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def run_routes(door: Door, runs: Runs) -> APIRouter:
    """Make the routes of runs."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}", tags=["runs"])
    Viewer = Annotated[Grant, Depends(door.gatekeeper.viewer)]
    Editor = Annotated[Grant, Depends(door.gatekeeper.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=door.settings.page_size_max)]

    async def started(grant: Grant, submission: Submission, build: Build) -> Response:
        accepted = await door.kernel.submit(submission)
        metrics.submitted("accepted")
        slug = grant.workspace.slug
        location = f"/api/v1/workspaces/{slug}/runs/{accepted.job.id}"
        body = json.dumps(run_json(accepted.job, slug, build))
        return Response(body, 202, {"Location": location}, JSON)

    async def read(grant: Grant, run_id: str) -> JobRow:
        ref = job_ref(grant, run_id)
        job = await door.kernel.read(lambda reading: reading.read_job(ref))
        if job is None or job.kind != KIND:
            raise NotFound(NO_RUN)
        return job

    async def shown(grant: Grant, job: JobRow) -> Response:
        build = None
        if job.build_id is not None:
            build = await door.library.find_build(grant.workspace.id, job.build_id)
        return Response(json.dumps(run_json(job, grant.workspace.slug, build)), media_type=JSON)

    @router.post(
        "/configurations/{configuration_id}/runs",
        status_code=202,
        responses=answers(202, Run, "Accepted", 400, 403, 404, 413, 415, 422, 429, **LOCATION),
        openapi_extra=takes(StartRunRequest, required=True),
    )
    async def start_run(request: Request, grant: Editor, configuration_id: str) -> Response:
        """Run a configuration, as it is now, on a document."""
        asked = (await read_small(request, _START)).model_dump(exclude_none=True)
        return await started(grant, *await runs.of_draft(grant, configuration_id, asked))

    @router.get("/runs", responses=answers(200, RunPage, "Runs, newest first", 404, 422))
    async def list_runs(grant: Viewer, limit: Limit = None, cursor: Name | None = None) -> Response:
        """List runs, newest first."""
        size = min(limit or PAGE_SIZE, door.settings.page_size_max)
        before, workspace = read_cursor(cursor), grant.workspace
        found = await door.kernel.read(
            lambda reading: reading.list_jobs(workspace.id, {"kind": KIND}, before, size + 1)
        )
        more = cursor_after(found[size - 1].id) if len(found) > size else None
        items: list[dict[str, Any]] = [run_json(job, workspace.slug, None) for job in found[:size]]
        return Response(json.dumps({"items": items, "next_cursor": more}), media_type=JSON)

    @router.get("/runs/{run_id}", responses=answers(200, Run, "The run", 404))
    async def read_run(grant: Viewer, run_id: str) -> Response:
        """Read a run and where its build is."""
        return await shown(grant, await read(grant, run_id))

    @router.post(
        "/runs/{run_id}/cancel",
        responses=answers(200, Run, "The run", 403, 404, 409, 413, 415, 422),
        openapi_extra=takes(ReasonRequest, required=False),
    )
    async def cancel_run(request: Request, grant: Editor, run_id: str) -> Response:
        """Cancel a run: at once before it starts, by request to its worker while it runs."""
        reason = await reason_in(request)
        await read(grant, run_id)
        ask = Stop(job_ref(grant, run_id), StopRequest.CANCEL, grant.user_id, reason)
        return await shown(grant, await door.kernel.stop(ask))

    @router.post(
        "/runs/{run_id}/rerun",
        status_code=202,
        responses=answers(202, Run, "Runs again", 400, 403, 404, 409, 422, 429, **LOCATION),
    )
    async def rerun(grant: Editor, run_id: str) -> Response:
        """Run again what a run ran: the same version on the same document, as a new run."""
        job = await read(grant, run_id)
        if job.status not in ENDED:
            raise NotFinished(f"The run is {job.status}.")
        payload = await door.kernel.read(lambda r: r.read_payload(job_ref(grant, run_id)))
        submission, build = await runs.again(grant, job, payload or "{}")
        return await started(grant, submission, build)

    return router
