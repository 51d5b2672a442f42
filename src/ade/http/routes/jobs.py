"""`/{ws}/jobs`: list jobs, and read one with its payload, result and files."""

import asyncio
import hashlib
import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import AwareDatetime, StringConstraints

from ade.app.times import microseconds, rfc3339
from ade.domain.errors import InvalidRequest, NotFinished, NotFound
from ade.domain.job import Priority, Status
from ade.http.auth import Authorization
from ade.http.context import NO_JOB, AppContext, job_ref
from ade.http.download import download
from ade.http.openapi import answers
from ade.http.paging import PAGE_SIZE, cursor_after, read_cursor
from ade.http.responses import JSON, json_response
from ade.http.schemas.jobs import ENDED, Job, JobPage, Waiting, job_body, read_waiting
from ade.http.schemas.results import Artifact, Result, result_body, stored_result
from ade.store.port import Reading
from ade.store.rows import JobRow

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


async def list_page(
    context: AppContext,
    auth: Authorization,
    filters: dict[str, Any],
    limit: int | None,
    cursor: str | None,
) -> Response:
    """Respond with a page of jobs; one more than the limit is read to see whether more follow."""
    if any("\0" in value for value in filters.values() if isinstance(value, str)):
        raise InvalidRequest("A filter holds the character NUL.")
    size = min(limit or PAGE_SIZE, context.settings.page_size_max)
    before = read_cursor(cursor)
    workspace = auth.workspace
    found = await context.kernel.read(
        lambda reading: reading.list_jobs(workspace.id, filters, before, size + 1)
    )
    more = cursor_after(found[size - 1].id) if len(found) > size else None
    items = [job_body(job, workspace.slug, safe_mode=context.safe_mode) for job in found[:size]]
    page: JobPage = {"items": items, "next_cursor": more}
    return json_response(page)


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
        auth: Viewer,
        status: Status | None = None,
        job_type: Name | None = None,
        target_id: Name | None = None,
        priority: Priority | None = None,
        submitted_after: AwareDatetime | None = None,
        limit: Limit = None,
        cursor: Name | None = None,
    ) -> Response:
        """List jobs that match all filters, newest first."""
        query = {
            "status": status,
            "kind": job_type,
            "target_id": target_id,
            "priority": priority,
            "submitted_after": _after(submitted_after),
        }
        filters = {name: value for name, value in query.items() if value is not None}
        return await list_page(context, auth, filters, limit, cursor)

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
            return job, read_waiting(reading, job, safe_mode=context.safe_mode)

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

    for name, file in (("artifact", "artifact.json"), ("output", "normalized.xlsx")):
        router.add_api_route(
            f"/{{job_id}}/{name}",
            _file_of(context, file),
            methods=["GET"],
            name=f"read_{name}",
            description=f"Read the job's {file}; 404 if it left none.",
            responses=answers(200, None, "The file", 404, content={JSON: {"schema": {}}}),
        )
    return router


def _file_of(context: AppContext, file: str) -> Any:
    async def read_file(
        request: Request,
        auth: Annotated[Authorization, Depends(context.authenticator.viewer)],
        job_id: str,
    ) -> Response:
        ref = job_ref(auth, job_id)
        named = await context.kernel.read(lambda reading: reading.read_artifacts(ref))
        left = next((one for one in named if one.name == file), None)
        if left is None:
            raise NotFound(f"The job produced no {file}.")
        return await download(
            request,
            await asyncio.to_thread(context.blobs.existing, left.digest),
            digest=left.digest,
            name=file,
            content_type=left.content_type,
        )

    return read_file


def _after(at: datetime | None) -> int | None:
    return None if at is None else microseconds(at)


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
