"""`/{ws}/builds` and the activation of versions: environments being made ready."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import PlainTextResponse

from ade.domain.errors import SAFE_MODE_DETAIL, InvalidRequest, SafeMode
from ade.domain.ids import is_uuid
from ade.domain.vocabulary import BuildStatus
from ade.environments import ensure_build, fingerprint_of
from ade.environments.activation import ActivationFolder
from ade.environments.failure import reason_of
from ade.http.auth import Grant
from ade.http.door import Door
from ade.http.openapi import answers
from ade.http.paging import cursor_after, read_cursor
from ade.http.schemas.builds import (
    ActivationBody,
    BuildBody,
    BuildPage,
    activation_body,
    build_body,
    build_path,
)
from ade.stages.builds import BuildEnded
from ade.store.builds import BUILDS_TOPIC
from ade.store.rows import Version

PAGE_SIZE = 50
SEQUENCE_MAX = 2**31 - 1
TEXT = {"text/plain": {"schema": {"type": "string"}}}
HARMLESS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
ACTIVATED = ("ready", "failed")
Sequence = Annotated[int, Path(ge=1, le=SEQUENCE_MAX)]


def build_routes(door: Door) -> APIRouter:
    """Make the routes of builds."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/builds", tags=["builds"])
    library, settings = door.library, door.settings
    Viewer = Annotated[Grant, Depends(door.gatekeeper.viewer)]
    Editor = Annotated[Grant, Depends(door.gatekeeper.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=settings.page_size_max)]

    @router.get("", responses=answers(200, BuildPage, "Builds, newest first", 404, 422))
    async def list_builds(
        grant: Viewer,
        configuration_id: Annotated[str | None, Query()] = None,
        status: Annotated[BuildStatus | None, Query()] = None,
        limit: Limit = None,
        cursor: Annotated[str | None, Query()] = None,
    ) -> BuildPage:
        """List builds that match all filters, newest first."""
        if configuration_id is not None and not is_uuid(configuration_id):
            raise InvalidRequest("configuration_id: it is no identifier.")
        size = min(limit or PAGE_SIZE, settings.page_size_max)
        workspace = grant.workspace
        found = await library.list_builds(
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
    async def read_build(grant: Viewer, build_id: str) -> BuildBody:
        """Read a build."""
        workspace = grant.workspace
        return build_body(await library.find_build(workspace.id, build_id), workspace.slug)

    @router.get("/{build_id}/log", responses=answers(200, None, "The log", 404, content=TEXT))
    async def read_build_log(grant: Viewer, build_id: str) -> Response:
        """Read what the installation said, as far as it has come; empty before it begins."""
        build = await library.find_build(grant.workspace.id, build_id)
        text = ""
        if build.version_id is not None:
            version = await library.find_version(build.workspace_id, build.version_id)
            folder = ActivationFolder(version, settings)
            found = await asyncio.to_thread(folder.log)
            text = found or ""
        return PlainTextResponse(text, headers=HARMLESS)

    @router.post(
        "/{build_id}/cancel", responses=answers(200, BuildBody, "Cancelled", 403, 404, 409)
    )
    async def cancel_build(grant: Editor, build_id: str) -> BuildBody:
        """Cancel a build that has not ended; runs that wait for it fail, and a new run tries again.

        Whoever makes it kills what is under way, at the latest when it renews its lease.
        """
        workspace = grant.workspace
        build = await library.cancel_build(workspace.id, build_id)
        door.kernel.notifier.publish([BUILDS_TOPIC])
        ended = BuildEnded(build.workspace_id, build.id, reason_of(build))
        await door.kernel.settle_build(ended)
        return build_body(build, workspace.slug)

    return router


def activation_routes(door: Door) -> APIRouter:
    """Make the routes by which versions are activated."""
    router = APIRouter(
        prefix="/api/v1/workspaces/{ws}/configurations/{configuration_id}/versions/{sequence}",
        tags=["builds"],
    )
    library = door.library
    Viewer = Annotated[Grant, Depends(door.gatekeeper.viewer)]
    Editor = Annotated[Grant, Depends(door.gatekeeper.editor)]

    async def find(grant: Grant, configuration_id: str, sequence: int) -> Version:
        configuration = await library.find_configuration(grant.workspace.id, configuration_id)
        return await library.find_sequence(grant.workspace.id, configuration.id, sequence)

    @router.post(
        "/activate",
        status_code=202,
        responses=answers(202, BuildBody, "The build", 400, 403, 404, 422),
    )
    async def activate(
        response: Response, grant: Editor, configuration_id: str, sequence: Sequence
    ) -> BuildBody:
        """Make a version ready to run: install its requirements and run its `on_activate`.

        A version that is ready stays as it is; one that failed or was cancelled is tried again.
        """
        version = await find(grant, configuration_id, sequence)
        if door.safe_mode:
            raise SafeMode(SAFE_MODE_DETAIL)
        build = await ensure_build(library, door.kernel, version, door.settings)
        slug = grant.workspace.slug
        response.headers["Location"] = build_path(slug, build.id)
        return build_body(build, slug)

    @router.get("/activation", responses=answers(200, ActivationBody, "The activation", 404, 422))
    async def read_activation(
        grant: Viewer, configuration_id: str, sequence: Sequence
    ) -> ActivationBody:
        """Read how far a version's activation has come, and what was installed and found."""
        version = await find(grant, configuration_id, sequence)
        build = await library.find_build_of(version, fingerprint_of(version))
        if build is None:
            return activation_body(None, None, None)
        folder = ActivationFolder(version, door.settings)
        result = await asyncio.to_thread(folder.result)
        if build.status not in ACTIVATED or (result or {}).get("build_id") != build.id:
            result = None  # of another engine's build, or of a try before this one
        hooks = await asyncio.to_thread(folder.hooks) if result is not None else None
        return activation_body(build, result, hooks)

    return router
