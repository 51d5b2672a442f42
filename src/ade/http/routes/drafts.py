"""`/{ws}/configurations/{id}/files|package|validate`: edit a draft and check it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response

from ade.domain.configuration import ABSENT, manifest_digest
from ade.domain.errors import PreconditionFailed
from ade.domain.file_names import config_path
from ade.domain.units import MIB
from ade.http.auth import Authorization
from ade.http.config_files import ZIP, ConfigurationFiles
from ade.http.context import AppContext
from ade.http.download import OCTETS, SAFE, has_already
from ade.http.draft_validation import check_draft
from ade.http.multipart import FORM
from ade.http.openapi import answers
from ade.http.schemas.catalogue import CheckBody, FileBody, FileList, file_body
from ade.store.rows import File

TEXT = "text/plain; charset=utf-8"
BYTES = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
PLAIN = {"text/plain": {"schema": {"type": "string"}}}
BODY = {"requestBody": {"required": True, "content": BYTES}}
ARCHIVE = {"requestBody": {"required": True, "content": {**ZIP, **BYTES, **FORM}}}
Tag = Annotated[str | None, Header(max_length=200)]


def draft_routes(context: AppContext, config_files: ConfigurationFiles) -> APIRouter:
    """Make the routes of drafts."""
    router = APIRouter(
        prefix="/api/v1/workspaces/{ws}/configurations/{configuration_id}", tags=["configurations"]
    )
    catalogue = context.catalogue
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    quota_bytes = context.settings.workspace_storage_mb * MIB

    @router.get("/files", responses=answers(200, FileList, "The files of the draft", 404))
    async def list_files(response: Response, auth: Viewer, configuration_id: str) -> FileList:
        """List the files of the draft; the ETag names them all together."""
        files = await catalogue.draft(auth.workspace.id, configuration_id)
        return _listed(response, files)

    @router.get(
        "/files/{path:path}",
        response_class=Response,
        responses={
            **answers(200, None, "The file", 404, 422, content={**BYTES, **PLAIN}),
            304: {"description": "Not changed"},
        },
    )
    async def read_file(
        request: Request, auth: Viewer, configuration_id: str, path: str
    ) -> Response:
        """Read one file of the draft; its ETag is its digest."""
        wanted = config_path(path)
        found = await catalogue.find_file(auth.workspace.id, configuration_id, wanted)
        headers = {**SAFE, "ETag": f'"{found.digest}"'}
        if has_already(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        content = await config_files.read(found)
        return Response(content, media_type=_type(content), headers=headers)

    @router.put(
        "/files/{path:path}",
        responses={
            **answers(200, FileBody, "Written", 403, 404, 408, 409, 412, 413, 422, 507),
            201: {"model": FileBody, "description": "Written; there was none of this path"},
        },
        openapi_extra=BODY,
    )
    async def write_file(
        request: Request,
        response: Response,
        auth: Editor,
        configuration_id: str,
        path: str,
        if_match: Tag = None,
        if_none_match: Tag = None,
    ) -> FileBody:
        """Write one file of the draft: the body, as it is.

        `If-Match` with the ETag that was read, or `If-None-Match: *` for a new file, keeps two
        people from undoing each other's work: 412 says that the file has changed.
        """
        wanted = config_path(path)
        only_if = _only_if(if_match, if_none_match)
        await catalogue.find_configuration(auth.workspace.id, configuration_id)
        file = await config_files.receive_file(request, wanted)
        is_new = await catalogue.put_file(
            auth.workspace.id, configuration_id, file, only_if=only_if, quota_bytes=quota_bytes
        )
        response.status_code = 201 if is_new else 200
        response.headers["ETag"] = f'"{file.digest}"'
        return file_body(file)

    @router.delete(
        "/files/{path:path}",
        status_code=204,
        responses=answers(204, None, "Deleted", 403, 404, 412, 422),
    )
    async def delete_file(
        auth: Editor, configuration_id: str, path: str, if_match: Tag = None
    ) -> Response:
        """Delete one file of the draft."""
        wanted, only_if = config_path(path), _only_if(if_match, None)
        await catalogue.delete_file(auth.workspace.id, configuration_id, wanted, only_if=only_if)
        return Response(status_code=204)

    @router.get(
        "/package",
        response_class=Response,
        responses={
            **answers(200, None, "The archive", 404, content=ZIP),
            304: {"description": "Not changed"},
        },
    )
    async def read_package(request: Request, auth: Viewer, configuration_id: str) -> Response:
        """Download the draft as a zip archive; the same files are always the same bytes."""
        files = await catalogue.draft(auth.workspace.id, configuration_id)
        return await config_files.send(request, files, f"{configuration_id}.zip")

    @router.put(
        "/package",
        responses=answers(
            200, FileList, "The files of the draft now", 403, 404, 408, 409, 412, 413, 415, 422, 507
        ),
        openapi_extra=ARCHIVE,
    )
    async def replace_package(
        request: Request,
        response: Response,
        auth: Editor,
        configuration_id: str,
        if_match: Tag = None,
    ) -> FileList:
        """Replace the whole draft by the files of a zip archive.

        A single top-level folder is removed. Links, paths that lead elsewhere, encrypted
        and oversized entries are refused, and then nothing is changed.
        """
        only_if = _only_if(if_match, None)
        here = auth.workspace.id
        await catalogue.find_configuration(here, configuration_id)
        files = await config_files.receive(request)
        await catalogue.replace_draft(
            here, configuration_id, files, only_if=only_if, quota_bytes=quota_bytes
        )
        return _listed(response, sorted(files))

    @router.post(
        "/validate", responses=answers(200, CheckBody, "What was found", 400, 403, 404, 429, 503)
    )
    async def validate_draft(auth: Editor, configuration_id: str) -> CheckBody:
        """Load the draft in the sandbox, and list what is wrong with it."""
        with context.inline_shares.held(auth):
            return await check_draft(context, config_files, auth.workspace.id, configuration_id)

    return router


def _listed(response: Response, files: list[File]) -> FileList:
    digest = manifest_digest(files)
    response.headers["ETag"] = f'"{digest}"'
    return {"digest": digest, "items": [file_body(file) for file in files], "next_cursor": None}


def _only_if(if_match: str | None, if_none_match: str | None) -> str | None:
    """Read which state the client expects; None means any."""
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise PreconditionFailed("Send If-Match with one ETag, or If-None-Match: *.")
        return ABSENT
    if if_match is None or if_match.strip() == "*":
        return None
    return if_match.strip().removeprefix("W/").strip('"')


def _type(content: bytes) -> str:
    """Return the media type: text if the content is UTF-8."""
    if b"\0" in content:
        return OCTETS
    try:
        content.decode()
    except UnicodeDecodeError:
        return OCTETS
    return TEXT
