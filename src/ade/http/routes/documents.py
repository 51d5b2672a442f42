"""`/{ws}/documents`: files to work on."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import TypeAdapter, ValidationError

from ade.domain.errors import InvalidRequest, StorageFull, Unavailable, UnreadableDocument
from ade.domain.outcome import Category, Outcome
from ade.domain.units import MIB
from ade.http.auth import Authorization
from ade.http.context import AppContext
from ade.http.download import download
from ade.http.multipart import FORM, receive_form
from ade.http.openapi import answers
from ade.http.paging import PAGE_SIZE, cursor_after, read_cursor
from ade.http.schemas.catalogue import (
    DocumentBody,
    DocumentPage,
    PreviewBody,
    PreviewError,
    document_body,
    document_path,
)

UPLOADS_MAX = 64
PREVIEW_ROWS = 20
PREVIEW_ROWS_MAX = 200
PREVIEW_ENTRY = "ade_engine.entry.preview"
PREVIEW_INPUT = "input"
# A copy of the document must fit into the folder that it is opened in, with some room to work.
PREVIEW_SHARE = 0.8
_PREVIEW = TypeAdapter(PreviewBody)
BREAKS = "The reader for this kind of document fails on this one."
BYTES = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def document_routes(context: AppContext) -> APIRouter:
    """Make the routes of documents."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/documents", tags=["documents"])
    catalogue, blobs, settings = context.catalogue, context.blobs, context.settings
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]
    Editor = Annotated[Authorization, Depends(context.authenticator.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=settings.page_size_max)]
    quota_bytes = settings.workspace_storage_mb * MIB
    uploads = 0

    @router.post(
        "",
        status_code=201,
        responses=answers(201, DocumentBody, "Kept", 403, 404, 408, 413, 415, 422, 507),
        openapi_extra={"requestBody": {"required": True, "content": FORM}},
    )
    async def upload_document(request: Request, response: Response, auth: Editor) -> DocumentBody:
        """Upload a file as the part `file` of a form; the same bytes twice are stored once."""
        nonlocal uploads
        workspace = auth.workspace
        if uploads >= UPLOADS_MAX:
            raise Unavailable(f"{UPLOADS_MAX} files are being uploaded already; try again shortly.")
        if quota_bytes and await catalogue.stored_bytes(workspace.id) >= quota_bytes:
            raise StorageFull(
                f"The workspace already stores its quota of {quota_bytes // MIB} MiB."
            )
        uploads += 1
        try:
            with await asyncio.to_thread(blobs.begin, settings.upload_max_mb * MIB) as writing:
                name, content_type = await receive_form(request, writing)
                blob = await asyncio.to_thread(writing.keep)
        finally:
            uploads -= 1
        made = await catalogue.add_document(
            workspace.id,
            name,
            blob.digest,
            blob.size_bytes,
            content_type,
            quota_bytes=quota_bytes,
        )
        response.headers["Location"] = document_path(workspace.slug, made.id)
        return document_body(made, workspace.slug)

    @router.get("", responses=answers(200, DocumentPage, "Documents, newest first", 404, 422))
    async def list_documents(
        auth: Viewer, limit: Limit = None, cursor: Annotated[str | None, Query()] = None
    ) -> DocumentPage:
        """List documents, newest first."""
        size = min(limit or PAGE_SIZE, settings.page_size_max)
        workspace = auth.workspace
        found = await catalogue.list_documents(
            workspace.id, before=read_cursor(cursor), limit=size + 1
        )
        more = cursor_after(found[size - 1].id) if len(found) > size else None
        items = [document_body(one, workspace.slug) for one in found[:size]]
        return {"items": items, "next_cursor": more}

    @router.get("/{document_id}", responses=answers(200, DocumentBody, "A document", 404))
    async def read_document(auth: Viewer, document_id: str) -> DocumentBody:
        """Read what is known of a document."""
        workspace = auth.workspace
        return document_body(
            await catalogue.find_document(workspace.id, document_id), workspace.slug
        )

    @router.get(
        "/{document_id}/content",
        response_class=Response,
        responses={
            **answers(200, None, "The bytes", 404, 416, content=BYTES),
            206: {"description": "A range of the bytes", "content": BYTES},
            304: {"description": "Not changed"},
        },
    )
    async def read_content(request: Request, auth: Viewer, document_id: str) -> Response:
        """Download a document, or a range of it; its ETag is its digest."""
        found = await catalogue.find_document(auth.workspace.id, document_id)
        return await download(
            request,
            await asyncio.to_thread(blobs.existing, found.digest),
            digest=found.digest,
            name=found.name,
            content_type=found.content_type,
        )

    @router.get(
        "/{document_id}/preview",
        responses=answers(200, PreviewBody, "The first rows", 404, 422, 429, 503),
    )
    async def preview_document(
        auth: Viewer,
        document_id: str,
        sheet: Annotated[str | None, Query(max_length=200, description="name or number")] = None,
        rows: Annotated[int, Query(ge=1, le=PREVIEW_ROWS_MAX)] = PREVIEW_ROWS,
    ) -> PreviewBody:
        """Show the first rows of a sheet; without `sheet`, of the first that is not hidden.

        The file is opened in the sandbox, for some seconds at most.
        """
        found = await catalogue.find_document(auth.workspace.id, document_id)
        if found.size_bytes > settings.worker_disk_mb * MIB * PREVIEW_SHARE:
            raise UnreadableDocument("The document is too large for a preview.")
        inputs = {"input": PREVIEW_INPUT, "sheet": sheet, "rows": rows}
        path = await asyncio.to_thread(blobs.existing, found.digest)
        with context.inline_shares.held(auth):
            outcome = await context.require_inline_tasks.run(
                auth.workspace.id, PREVIEW_ENTRY, inputs, {PREVIEW_INPUT: path}
            )
        return _preview(found.id, outcome)

    @router.delete(
        "/{document_id}",
        status_code=204,
        responses={**answers(204, None, "Deleted", 403, 404)},
    )
    async def delete_document(auth: Editor, document_id: str) -> None:
        """Delete a document; runs that were submitted before still read it."""
        await catalogue.delete_document(auth.workspace.id, document_id)

    return router


def _preview(document_id: str, outcome: Outcome) -> PreviewBody:
    """Read the outcome of a preview, or raise why there is none."""
    error = outcome.error
    if error is not None and error.category is Category.INTERNAL_ERROR:
        raise Unavailable("The preview failed; try again.")
    if error is not None and error.category is Category.RESOURCE_LIMIT:
        raise UnreadableDocument("Opening the document takes too much time or memory.")
    if error is not None:
        raise UnreadableDocument(BREAKS)
    shown = (outcome.result or {})["outputs"]["result_json"]
    error_body = shown.get("error") if isinstance(shown, dict) else None
    try:
        if error_body is None:
            return _PREVIEW.validate_python({**shown, "document_id": document_id})
        preview_error = PreviewError.model_validate(error_body)
    except (ValidationError, TypeError):  # the document took over its reader and wrote this itself
        raise UnreadableDocument(BREAKS) from None
    if preview_error.code == "no_such_sheet":
        raise InvalidRequest(
            preview_error.message, errors=[{"field": "sheet", "message": "there is no such sheet"}]
        )
    raise UnreadableDocument(preview_error.message, errors=[preview_error.model_dump()])
