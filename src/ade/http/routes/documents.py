"""`/{ws}/documents`: files to work on."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from ade.domain.errors import StorageFull, Unavailable
from ade.http.auth import Grant
from ade.http.door import Door
from ade.http.download import OCTETS, download
from ade.http.library_models import DocumentBody, DocumentPage
from ade.http.multipart import FIELD, MULTIPART, receive_upload
from ade.http.openapi import answers
from ade.http.paging import cursor_after, read_cursor
from ade.http.times import rfc3339
from ade.store.library import Document

PAGE_SIZE = 50
UPLOADS_MAX = 64
MIB = 1024 * 1024
BYTES = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            MULTIPART: {
                "schema": {
                    "type": "object",
                    "required": [FIELD],
                    "properties": {FIELD: {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


def document_path(slug: str, document_id: str) -> str:
    """Return where a document is found."""
    return f"/api/v1/workspaces/{slug}/documents/{document_id}"


def document_json(document: Document, slug: str) -> dict[str, Any]:
    """Show a document."""
    path = document_path(slug, document.id)
    return {
        "document_id": document.id,
        "workspace_id": document.workspace_id,
        "name": document.name,
        "content_type": document.content_type,
        "size_bytes": document.size_bytes,
        "digest": document.digest,
        "created_at": rfc3339(document.created_at),
        "links": {"self": path, "content": f"{path}/content", "preview": f"{path}/preview"},
    }


def document_routes(door: Door) -> APIRouter:
    """Make the routes of documents."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/documents", tags=["documents"])
    library, blobs, settings = door.library, door.blobs, door.settings
    Viewer = Annotated[Grant, Depends(door.gatekeeper.viewer)]
    Editor = Annotated[Grant, Depends(door.gatekeeper.editor)]
    Limit = Annotated[int | None, Query(ge=1, le=settings.page_size_max)]
    quota_bytes = settings.workspace_storage_mb * MIB
    uploads = 0

    @router.post(
        "",
        status_code=201,
        responses=answers(201, DocumentBody, "Kept", 403, 404, 413, 415, 422, 507),
        openapi_extra=FORM,
    )
    async def upload_document(request: Request, response: Response, grant: Editor) -> Any:
        """Upload a file as the part `file` of a form; the same bytes twice are stored once."""
        nonlocal uploads
        workspace = grant.workspace
        if uploads >= UPLOADS_MAX:
            raise Unavailable(f"{UPLOADS_MAX} files are being uploaded already; try again shortly.")
        if quota_bytes and await library.stored_bytes(workspace.id) >= quota_bytes:
            raise StorageFull(f"The workspace holds its {quota_bytes // MIB} MiB already.")
        uploads += 1
        try:
            sent = await receive_upload(request, blobs, settings.upload_max_mb * MIB)
        finally:
            uploads -= 1
        made = await library.add_document(
            workspace.id,
            sent.name,
            sent.blob.digest,
            sent.blob.size_bytes,
            sent.content_type,
            quota_bytes=quota_bytes,
        )
        response.headers["Location"] = document_path(workspace.slug, made.id)
        return document_json(made, workspace.slug)

    @router.get("", responses=answers(200, DocumentPage, "Documents, newest first", 404, 422))
    async def list_documents(
        grant: Viewer, limit: Limit = None, cursor: Annotated[str | None, Query()] = None
    ) -> Any:
        """List documents, newest first."""
        size = min(limit or PAGE_SIZE, settings.page_size_max)
        workspace = grant.workspace
        found = await library.list_documents(
            workspace.id, before=read_cursor(cursor), limit=size + 1
        )
        more = cursor_after(found[size - 1].id) if len(found) > size else None
        items = [document_json(one, workspace.slug) for one in found[:size]]
        return {"items": items, "next_cursor": more}

    @router.get("/{document_id}", responses=answers(200, DocumentBody, "A document", 404))
    async def read_document(grant: Viewer, document_id: str) -> Any:
        """Read what is known of a document."""
        workspace = grant.workspace
        return document_json(await library.find_document(workspace.id, document_id), workspace.slug)

    @router.get(
        "/{document_id}/content",
        responses={
            **answers(200, None, "The bytes", 404, 416, content=BYTES),
            206: {"description": "A range of the bytes", "content": BYTES},
            304: {"description": "Not changed"},
        },
    )
    async def read_content(request: Request, grant: Viewer, document_id: str) -> Response:
        """Download a document, or a range of it; its ETag is its digest."""
        found = await library.find_document(grant.workspace.id, document_id)
        return await download(
            request,
            blobs.path(found.digest),
            digest=found.digest,
            name=found.name,
            content_type=found.content_type,
        )

    @router.delete(
        "/{document_id}",
        status_code=204,
        responses={**answers(204, None, "Deleted", 403, 404)},
    )
    async def delete_document(grant: Editor, document_id: str) -> None:
        """Delete a document; runs that were given it before still read it."""
        await library.delete_document(grant.workspace.id, document_id)

    return router
