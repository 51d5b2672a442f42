"""`/{ws}/jobs`: list jobs, and read one with its payload, result and files."""

import asyncio
import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import StringConstraints

from ade.app.times import rfc3339
from ade.domain.errors import NotFinished, NotFound
from ade.domain.evaluation import Evaluation
from ade.domain.job import WAITING, Priority, Status
from ade.http.auth import Authorization
from ade.http.context import NO_JOB, AppContext, job_ref
from ade.http.download import download
from ade.http.job_filters import (
    NONE,
    VALUES_MAX,
    Time,
    any_of,
    count_by_status,
    find_page,
    submitted_between,
)
from ade.http.openapi import answers
from ade.http.responses import JSON, json_response
from ade.http.schemas.jobs import (
    ENDED,
    Job,
    JobCounts,
    JobPage,
    Waiting,
    job_body,
    job_path,
    read_queue_facts,
    read_waiting,
)
from ade.http.schemas.results import Artifact, Result, result_body, stored_result
from ade.store.port import Reading
from ade.store.rows import JobRow

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]

FILES_NAMED_MAX = 20
FILES = {
    "artifact": (("artifact.json",), "the job's artifact.json"),
    "output": (
        ("normalized.xlsx", "normalized.csv", "normalized.parquet", "normalized.jsonl"),
        "the rows that a run wrote: its workbook, or without one its CSV, Parquet or JSON lines,"
        " the first of these that it left",
    ),
}
"""What can be read under a name of its own: the first of these files that the job left."""


def _job_filters(
    status: Annotated[list[Status], Query(max_length=VALUES_MAX)] = NONE,
    job_type: Annotated[list[Name], Query(max_length=VALUES_MAX)] = NONE,
    target_id: Annotated[list[Name], Query(max_length=VALUES_MAX)] = NONE,
    priority: Annotated[list[Priority], Query(max_length=VALUES_MAX)] = NONE,
    evaluation: Annotated[list[Evaluation], Query(max_length=VALUES_MAX)] = NONE,
    submitted_after: Time | None = None,
    submitted_before: Time | None = None,
) -> dict[str, Any]:
    return {
        **any_of("status", status),
        **any_of("kind", job_type),
        **any_of("target_id", target_id),
        **any_of("priority", priority),
        **any_of("evaluation", evaluation),
        **submitted_between(submitted_after, submitted_before),
    }


JobFilters = Annotated[dict[str, Any], Depends(_job_filters)]


async def list_page(
    context: AppContext,
    auth: Authorization,
    filters: dict[str, Any],
    limit: int | None,
    cursor: str | None,
) -> Response:
    """Respond with a page of jobs."""
    page = await find_page(context, auth, filters, limit, cursor)
    facts = None
    if any(Status(job.status) in WAITING for job in page.jobs):
        facts = await context.kernel.read(read_queue_facts)
    safe_mode, slug = context.safe_mode, auth.workspace.slug
    items = [job_body(job, slug, safe_mode=safe_mode, facts=facts) for job in page.jobs]
    found: JobPage = {"items": items, "next_cursor": page.next_cursor}
    return json_response(found)


def job_routes(context: AppContext) -> APIRouter:
    """Make the routes that read jobs."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs", tags=["jobs"])
    kernel = context.kernel
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Limit = Annotated[int | None, Query(ge=1, le=context.settings.page_size_max)]

    async def read_ended(auth: Authorization, job_id: str) -> tuple[JobRow, str | None]:
        ref = job_ref(auth, job_id)
        job, body = await kernel.read(lambda r: (r.read_job(ref), r.read_result(ref)))
        if job is None:
            raise NotFound(NO_JOB)
        if job.status not in ENDED:
            raise NotFinished(f"The job is {job.status}.")
        return job, body

    @router.get("", responses=answers(200, JobPage, "Jobs, newest first", 404, 422))
    async def list_jobs(
        auth: Viewer, filters: JobFilters, limit: Limit = None, cursor: Name | None = None
    ) -> Response:
        """List jobs that match all filters, newest first.

        A filter that is given several times matches any of its values.
        """
        return await list_page(context, auth, filters, limit, cursor)

    @router.get("/counts", responses=answers(200, JobCounts, "Counts by status", 404, 422))
    async def count_jobs(auth: Viewer, filters: JobFilters) -> Response:
        """Count the jobs that match all filters, by status."""
        counts = await count_by_status(context, auth, filters)
        found: JobCounts = {"counts": counts, "total": sum(counts.values())}
        return json_response(found)

    @router.get(
        "/{job_id}",
        responses={**answers(200, Job, "The job", 404), 304: {"description": "Not changed"}},
    )
    async def read_job(
        auth: Viewer, job_id: str, if_none_match: Annotated[str | None, Header()] = None
    ) -> Response:
        """Read a job, and why it waits if it does."""
        ref = job_ref(auth, job_id)

        def look(reading: Reading) -> tuple[JobRow, Waiting | None]:
            job = reading.read_job(ref)
            if job is None:
                raise NotFound(NO_JOB)
            return job, read_waiting(
                reading, job, safe_mode=context.safe_mode, agent_waits=context.agent_waits
            )

        job, waiting = await kernel.read(look)
        body = json.dumps(job_body(job, auth.workspace.slug, waiting=waiting)).encode()
        tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if if_none_match is not None and (tag in if_none_match or if_none_match.strip() == "*"):
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=JSON, headers=headers)

    @router.get(
        "/{job_id}/payload",
        responses=answers(200, None, "The envelope", 404, content={JSON: {"schema": {}}}),
    )
    async def read_payload(auth: Viewer, job_id: str) -> Response:
        """Read the payload: the envelope that the job's executor gets."""
        ref = job_ref(auth, job_id)
        job, payload = await kernel.read(lambda r: (r.read_job(ref), r.read_payload(ref)))
        if job is None or payload is None:
            raise NotFound(NO_JOB)
        return json_response(_envelope(job, payload))

    @router.get("/{job_id}/result", responses=answers(200, Result, "How it ended", 404, 409))
    async def read_result(auth: Viewer, job_id: str) -> Response:
        """Read how the job ended and what it left; 409 `not_finished` before that."""
        job, body = await read_ended(auth, job_id)
        version = context.job_requests.env_version(job.kind)
        return json_response(result_body(job, body, version))

    @router.get(
        "/{job_id}/artifacts",
        responses=answers(200, list[Artifact], "The files that it left", 404),
    )
    async def list_artifacts(auth: Viewer, job_id: str) -> Response:
        """List the files that the job left so far."""
        ref = job_ref(auth, job_id)
        job, body = await kernel.read(lambda r: (r.read_job(ref), r.read_result(ref)))
        if job is None:
            raise NotFound(NO_JOB)
        found = stored_result(body).get("artifacts")
        return json_response(found if isinstance(found, list) else [])

    for name, (files, description) in FILES.items():
        router.add_api_route(
            f"/{{job_id}}/{name}",
            _first_file_of(context, files),
            methods=["GET"],
            name=f"read_{name}",
            description=f"Read {description}; 409 `not_finished` before the job has ended, 404 if"
            " it left none, which names the files that it left.",
            responses=answers(200, None, "The file", 404, 409, content={JSON: {"schema": {}}}),
        )
    return router


def _first_file_of(context: AppContext, files: tuple[str, ...]) -> Any:
    async def read_file(
        request: Request,
        auth: Annotated[Authorization, Depends(context.authenticator.viewer)],
        job_id: str,
    ) -> Response:
        ref = job_ref(auth, job_id)
        job, named = await context.kernel.read(lambda r: (r.read_job(ref), r.read_artifacts(ref)))
        if job is None:
            raise NotFound(NO_JOB)
        if job.status not in ENDED:
            raise NotFinished(f"The job is {job.status}.")
        left = {one.name: one for one in named}
        found = next((left[name] for name in files if name in left), None)
        if found is None:
            raise NotFound(_nothing_of(files[0], sorted(left), auth.workspace.slug, job))
        return await download(
            request,
            await asyncio.to_thread(context.blobs.existing, found.digest),
            digest=found.digest,
            name=found.name,
            content_type=found.content_type,
        )

    return read_file


def _nothing_of(file: str, left: list[str], slug: str, job: JobRow) -> str:
    """Say that a job did not leave a file, and which ones it left."""
    if not left:
        return f"The job produced no {file}, and left no other files."
    named = ", ".join(left[:FILES_NAMED_MAX])
    others = len(left) - FILES_NAMED_MAX
    more = f" and {others} more" if others > 0 else ""
    place = f"{job_path(slug, job.id)}/artifacts"
    return f"The job produced no {file}. It left {named}{more}: GET {place} lists them."


def _envelope(job: JobRow, payload: str) -> dict[str, Any]:
    """Add the fields that ADE sets to what the client sent."""
    sent = json.loads(payload)
    return {
        "schema_version": "1.0",
        **sent,
        "job_id": job.id,
        "job_type": job.kind,
        "created_at": rfc3339(job.submitted_at),
        "workspace_id": job.workspace_id,
        "execution_key": job.execution_key,
        "priority": job.priority,
        "requested_by": {"user_id": job.submitted_by},
        "limits": json.loads(job.limits),
    }
