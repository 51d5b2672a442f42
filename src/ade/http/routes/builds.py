"""`/{ws}/builds` and the activation of versions: environments being made ready."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from ade.app.submission import PreparedSubmission
from ade.domain.build import SETTLED, BuildStatus
from ade.domain.errors import Conflict, InvalidRequest
from ade.domain.ids import is_uuid
from ade.domain.job import StopRequest
from ade.domain.output import Stream
from ade.environments import fingerprint_of
from ade.environments.activation import ActivationFolder
from ade.events.output_log import read_pieces, stream_text
from ade.http.auth import Authorization
from ade.http.body import read_unused_body
from ade.http.context import AppContext
from ade.http.openapi import answers, headers_taken
from ade.http.paging import PAGE_SIZE, cursor_after, read_cursor
from ade.http.routes.submissions import (
    IDEMPOTENCY,
    LOCATION,
    WAIT,
    client_request,
    response_of,
)
from ade.http.schemas.body import SEQUENCE_MAX, stored_json
from ade.http.schemas.builds import (
    ActivationBody,
    BuildBody,
    BuildPage,
    activation_body,
    build_body,
)
from ade.http.views import BuildView
from ade.stages.stop import Stop
from ade.store.rows import Build, JobRef, Version

TEXT = {"text/plain": {"schema": {"type": "string"}}}
HARMLESS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
ACTIVATED = ("ready", "failed")
Sequence = Annotated[int, Path(ge=1, le=SEQUENCE_MAX)]


def build_routes(context: AppContext) -> APIRouter:
    """Make the routes of builds."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/builds", tags=["builds"])
    catalogue, settings = context.catalogue, context.settings
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=settings.page_size_max)]

    @router.get("", responses=answers(200, BuildPage, "Builds, newest first", 404, 422))
    async def list_builds(
        auth: Viewer,
        configuration_id: Annotated[str | None, Query()] = None,
        status: Annotated[BuildStatus | None, Query()] = None,
        limit: Limit = None,
        cursor: Annotated[str | None, Query()] = None,
    ) -> BuildPage:
        """List builds that match all filters, newest first."""
        if configuration_id is not None and not is_uuid(configuration_id):
            raise InvalidRequest("configuration_id: it is not an identifier.")
        size = min(limit or PAGE_SIZE, settings.page_size_max)
        workspace = auth.workspace
        found = await catalogue.list_builds(
            workspace.id,
            configuration_id=configuration_id and configuration_id.lower(),
            status=status,
            before=read_cursor(cursor),
            limit=size + 1,
        )
        more = cursor_after(found[size - 1].id) if len(found) > size else None
        return {
            "items": [build_body(build, workspace.slug) for build in found[:size]],
            "next_cursor": more,
        }

    @router.get("/{build_id}", responses=answers(200, BuildBody, "A build", 404))
    async def read_build(auth: Viewer, build_id: str) -> BuildBody:
        """Read a build."""
        workspace = auth.workspace
        return build_body(await catalogue.find_build(workspace.id, build_id), workspace.slug)

    @router.get("/{build_id}/log", responses=answers(200, None, "The log", 404, content=TEXT))
    async def read_build_log(auth: Viewer, build_id: str) -> Response:
        """Read the installation log so far; empty before it begins."""
        build = await catalogue.find_build(auth.workspace.id, build_id)
        text = await _output_of(context, build)
        if not text and build.version_id is not None:  # a build of an earlier version of ADE
            version = await catalogue.find_version(build.workspace_id, build.version_id)
            folder = ActivationFolder(version, settings)
            found = await asyncio.to_thread(folder.log)
            text = found or ""
        return PlainTextResponse(text, headers=HARMLESS)

    @router.post(
        "/{build_id}/cancel", responses=answers(200, BuildBody, "Cancelled", 403, 404, 409)
    )
    async def cancel_build(auth: Editor, build_id: str) -> BuildBody:
        """Cancel a build that has not ended; runs that wait for it fail, and a new run tries again.

        A worker that is making it is submitted to stop, and the build is cancelled when it has.
        """
        workspace = auth.workspace
        build = await catalogue.find_build(workspace.id, build_id)
        if build.status in SETTLED or build.job_id is None:
            raise Conflict(f"A build that is {build.status} cannot be cancelled.")
        job = JobRef(workspace.id, build.job_id)
        await context.kernel.stop(Stop(job, StopRequest.CANCEL, auth.user_id))
        return build_body(await catalogue.find_build(workspace.id, build_id), workspace.slug)

    return router


async def _output_of(context: AppContext, build: Build) -> str:
    """Return what the job of a build wrote, on whichever host it ran."""
    if build.job_id is None:
        return ""
    ref = JobRef(build.workspace_id, build.job_id)
    pieces = await context.kernel.read(lambda reading: read_pieces(reading, ref))
    newest = max((piece.attempt for piece in pieces), default=0)
    return stream_text([piece for piece in pieces if piece.attempt == newest], Stream.STDOUT)


async def _report_of(context: AppContext, build: Build) -> dict[str, Any] | None:
    """Return what the job of a build reported, on whichever host it ran."""
    if build.job_id is None:
        return None
    ref = JobRef(build.workspace_id, build.job_id)
    body = await context.kernel.read(lambda reading: reading.read_result(ref))
    report = (stored_json(body) or {}).get("outputs", {}).get("result_json")
    return report if isinstance(report, dict) and "packages" in report else None


def activation_routes(context: AppContext) -> APIRouter:
    """Make the routes by which versions are activated."""
    router = APIRouter(
        prefix="/api/v1/workspaces/{ws}/configurations/{configuration_id}/versions/{sequence}",
        tags=["builds"],
    )
    catalogue = context.catalogue
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]

    async def find(auth: Authorization, configuration_id: str, sequence: int) -> Version:
        configuration = await catalogue.find_configuration(auth.workspace.id, configuration_id)
        return await catalogue.find_sequence(auth.workspace.id, configuration.id, sequence)

    @router.post(
        "/activate",
        status_code=202,
        responses={
            **answers(202, BuildBody, "The build", 400, 403, 404, 409, 422, **LOCATION),
            **answers(200, BuildBody, "Ready, or ended within the time to wait", **LOCATION),
        },
        openapi_extra={"parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT)},
    )
    async def activate(
        request: Request, auth: Editor, configuration_id: str, sequence: Sequence
    ) -> Response:
        """Make a version the active one, which runs use by default, as soon as its build is ready.

        Its requirements are installed, the package is loaded and its `on_activate` hooks are run. A
        version that was built before becomes active at once; a build that failed or was cancelled
        is made again. To go back, activate an earlier version.
        """
        body = await read_unused_body(request)
        where = f"{configuration_id.lower()}/versions/{sequence}"
        submitted = client_request(request.scope, auth, f"POST {where}/activate", body)

        async def prepare() -> PreparedSubmission:
            version = await find(auth, configuration_id, sequence)
            submission = await context.build_requests.activation(submitted.caller, version)
            return PreparedSubmission(submission, BuildView(context, auth))

        return response_of(
            submitted, await context.submissions.submit(submitted, prepare)
        ).as_response()

    @router.get("/activation", responses=answers(200, ActivationBody, "The activation", 404, 422))
    async def read_activation(
        auth: Viewer, configuration_id: str, sequence: Sequence
    ) -> ActivationBody:
        """Read how far a version's activation has come, and what was installed and found."""
        version = await find(auth, configuration_id, sequence)
        build = await catalogue.find_build_of(version, fingerprint_of(version))
        if build is None:
            return activation_body(None, None, None)
        if build.status not in ACTIVATED:
            return activation_body(build, None, None)
        report = await _report_of(context, build)
        if report is not None:
            return activation_body(build, report, report.get("hooks"))
        folder = ActivationFolder(version, context.settings)
        result = await asyncio.to_thread(folder.result)
        if (result or {}).get("build_id") != build.id:
            result = None  # of another engine version's build, or of an earlier try
        hooks = await asyncio.to_thread(folder.hooks) if result is not None else None
        return activation_body(build, result, hooks)

    return router
