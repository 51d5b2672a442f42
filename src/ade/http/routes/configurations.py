"""`/{ws}/configurations`: rules and code under a name, and the versions of them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import TypeAdapter

from ade.domain.configuration import manifest_digest
from ade.domain.errors import InvalidRequest
from ade.domain.units import MIB
from ade.http.auth import Authorization
from ade.http.body import read_small
from ade.http.config_files import ZIP, ConfigurationFiles
from ade.http.context import AppContext
from ade.http.openapi import answers, takes
from ade.http.paging import PAGE_SIZE, cursor_after, read_cursor
from ade.http.schemas.body import SEQUENCE_MAX
from ade.http.schemas.catalogue import (
    ConfigurationDetail,
    ConfigurationPage,
    ConfigurationRequest,
    TemplateBody,
    TemplatePage,
    VersionBody,
    VersionDetail,
    VersionPage,
    active_version_body,
    configuration_body,
    configuration_path,
    file_body,
    version_body,
)
from ade.store.rows import Configuration, File, Version

Sequence = Annotated[int, Path(ge=1, le=SEQUENCE_MAX)]
Cursor = Annotated[str | None, Query()]
_NEW = TypeAdapter(ConfigurationRequest)


def configuration_routes(context: AppContext, config_files: ConfigurationFiles) -> APIRouter:
    """Make the routes of configurations and their versions."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}", tags=["configurations"])
    catalogue, settings = context.catalogue, context.settings
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=settings.page_size_max)]
    quota_bytes = settings.workspace_storage_mb * MIB

    async def detail(auth: Authorization, configuration: Configuration) -> ConfigurationDetail:
        here = auth.workspace.id, configuration.id
        files = await catalogue.draft(*here)
        newest = await catalogue.list_versions(*here, before=None, limit=1)
        activation, active = await catalogue.find_activation(*here)
        slug = auth.workspace.slug
        return {
            **configuration_body(configuration, slug),
            "draft_digest": manifest_digest(files),
            "active_version": active_version_body(activation, active),
            "activating_version_id": activation.pending_version_id,
            "latest_version": version_body(newest[0], slug) if newest else None,
        }

    @router.get("/templates", responses=answers(200, TemplatePage, "Templates", 404))
    async def list_templates(auth: Viewer) -> TemplatePage:
        """List the configurations that a new one may start from."""
        items: list[TemplateBody] = [
            {"name": name, "files": list(await config_files.template(name))}
            for name in config_files.templates
        ]
        return {"items": items, "next_cursor": None}

    @router.post(
        "/configurations",
        status_code=201,
        responses=answers(201, ConfigurationDetail, "Made", 403, 404, 409, 413, 415, 422, 507),
        openapi_extra=takes(ConfigurationRequest),
    )
    async def make_configuration(
        request: Request, response: Response, auth: Editor
    ) -> ConfigurationDetail:
        """Create a configuration, empty or from a template."""
        body = await read_small(request, _NEW)
        files: list[File] = []
        if body.template is not None:
            if body.template not in config_files.templates:
                known = ", ".join(config_files.templates)
                raise InvalidRequest(
                    f"There is no such template; there are: {known}.",
                    errors=[{"field": "template", "message": f"give one of: {known}"}],
                )
            files = await config_files.keep(await config_files.template(body.template))
        made = await catalogue.add_configuration(
            auth.workspace.id, body.name, files, quota_bytes=quota_bytes
        )
        response.headers["Location"] = configuration_path(auth.workspace.slug, made.id)
        return await detail(auth, made)

    @router.get(
        "/configurations",
        responses=answers(200, ConfigurationPage, "Configurations, newest first", 404, 422),
    )
    async def list_configurations(
        auth: Viewer, limit: Limit = None, cursor: Cursor = None
    ) -> ConfigurationPage:
        """List configurations, newest first."""
        size = min(limit or PAGE_SIZE, settings.page_size_max)
        workspace = auth.workspace
        found = await catalogue.list_configurations(
            workspace.id, before=read_cursor(cursor), limit=size + 1
        )
        more = cursor_after(found[size - 1].id) if len(found) > size else None
        items = [configuration_body(one, workspace.slug) for one in found[:size]]
        return {"items": items, "next_cursor": more}

    @router.get(
        "/configurations/{configuration_id}",
        responses=answers(200, ConfigurationDetail, "A configuration", 404),
    )
    async def read_configuration(auth: Viewer, configuration_id: str) -> ConfigurationDetail:
        """Read what is known of a configuration."""
        found = await catalogue.find_configuration(auth.workspace.id, configuration_id)
        return await detail(auth, found)

    @router.delete(
        "/configurations/{configuration_id}",
        status_code=204,
        responses=answers(204, None, "Deleted", 403, 404),
    )
    async def delete_configuration(auth: Editor, configuration_id: str) -> Response:
        """Delete a configuration; runs that were accepted before still run as they were."""
        await catalogue.delete_configuration(auth.workspace.id, configuration_id)
        return Response(status_code=204)

    @router.post(
        "/configurations/{configuration_id}/versions",
        status_code=201,
        responses=answers(201, VersionBody, "The version", 403, 404, 409),
    )
    async def make_version(response: Response, auth: Editor, configuration_id: str) -> VersionBody:
        """Create a version of the draft; a draft that did not change gives the same version."""
        made = await catalogue.snapshot(auth.workspace.id, configuration_id, auth.user_id)
        shown = version_body(made, auth.workspace.slug)
        response.headers["Location"] = shown["links"]["self"]
        return shown

    @router.get(
        "/configurations/{configuration_id}/versions",
        responses=answers(200, VersionPage, "Versions, newest first", 404, 422),
    )
    async def list_versions(
        auth: Viewer, configuration_id: str, limit: Limit = None, cursor: Cursor = None
    ) -> VersionPage:
        """List versions, newest first."""
        size = min(limit or PAGE_SIZE, settings.page_size_max)
        workspace = auth.workspace
        found = await catalogue.list_versions(
            workspace.id, configuration_id, before=read_cursor(cursor), limit=size + 1
        )
        more = cursor_after(found[size - 1].id) if len(found) > size else None
        items = [version_body(one, workspace.slug) for one in found[:size]]
        return {"items": items, "next_cursor": more}

    async def version_of(auth: Authorization, configuration_id: str, sequence: int) -> Version:
        here = auth.workspace.id
        found = await catalogue.find_configuration(here, configuration_id)
        return await catalogue.find_sequence(here, found.id, sequence)

    @router.get(
        "/configurations/{configuration_id}/versions/{sequence}",
        responses=answers(200, VersionDetail, "A version", 404, 422),
    )
    async def read_version(
        auth: Viewer, configuration_id: str, sequence: Sequence
    ) -> VersionDetail:
        """Read a version and the list of its files."""
        found = await version_of(auth, configuration_id, sequence)
        shown = version_body(found, auth.workspace.slug)
        return {**shown, "files": [file_body(file) for file in found.files]}

    @router.get(
        "/configurations/{configuration_id}/versions/{sequence}/package",
        response_class=Response,
        responses={
            **answers(200, None, "The archive", 404, 422, content=ZIP),
            304: {"description": "Not changed"},
        },
    )
    async def read_version_package(
        request: Request, auth: Viewer, configuration_id: str, sequence: Sequence
    ) -> Response:
        """Download a version as a zip archive; the same version is always the same bytes."""
        found = await version_of(auth, configuration_id, sequence)
        name = f"{configuration_id}-{sequence}.zip"
        return await config_files.send(request, found.files, name)

    return router
