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
from ade.http.auth import Authorization
from ade.http.context import AppContext
from ade.http.openapi import answers
from ade.http.paging import PAGE_SIZE, cursor_after, read_cursor
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

SEQUENCE_MAX = 2**31 - 1
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
        text = ""
        if build.version_id is not None:
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

        Whoever makes it kills what is under way, at the latest when it renews its lease.
        """
        workspace = auth.workspace
        build = await catalogue.cancel_build(workspace.id, build_id)
        context.kernel.notifier.publish([BUILDS_TOPIC])
        ended = BuildEnded(build.workspace_id, build.id, reason_of(build))
        await context.kernel.settle_build(ended)
        return build_body(build, workspace.slug)

    return router


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
        responses=answers(202, BuildBody, "The build", 400, 403, 404, 422),
    )
    async def activate(
        response: Response, auth: Editor, configuration_id: str, sequence: Sequence
    ) -> BuildBody:
        """Make a version ready to run: install its requirements and run its `on_activate`.

        A version that is ready stays as it is; one that failed or was cancelled is tried again.
        """
        version = await find(auth, configuration_id, sequence)
        if context.safe_mode:
            raise SafeMode(SAFE_MODE_DETAIL)
        build = await ensure_build(catalogue, context.kernel, version, context.settings)
        slug = auth.workspace.slug
        response.headers["Location"] = build_path(slug, build.id)
        return build_body(build, slug)

    @router.get("/activation", responses=answers(200, ActivationBody, "The activation", 404, 422))
    async def read_activation(
        auth: Viewer, configuration_id: str, sequence: Sequence
    ) -> ActivationBody:
        """Read how far a version's activation has come, and what was installed and found."""
        version = await find(auth, configuration_id, sequence)
        build = await catalogue.find_build_of(version, fingerprint_of(version))
        if build is None:
            return activation_body(None, None, None)
        folder = ActivationFolder(version, context.settings)
        result = await asyncio.to_thread(folder.result)
        if build.status not in ACTIVATED or (result or {}).get("build_id") != build.id:
            result = None  # of another engine version's build, or of an earlier try
        hooks = await asyncio.to_thread(folder.hooks) if result is not None else None
        return activation_body(build, result, hooks)

    return router
