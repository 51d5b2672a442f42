"""`/artifacts`: the bytes of files that jobs left, by key or by a signed link."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ade.app.times import rfc3339
from ade.domain.errors import NotFound
from ade.domain.units import MICROSECONDS
from ade.http.auth import Role
from ade.http.context import AppContext
from ade.http.download import OCTETS, download
from ade.http.openapi import answers
from ade.http.schemas.results import SignedLink
from ade.http.signing import Signer
from ade.store.rows import ArtifactRow

NO_ARTIFACT = "There is no such artifact."
BYTES = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}


def artifact_routes(context: AppContext) -> APIRouter:
    """Make the routes of artifacts."""
    router = APIRouter(prefix="/api/v1/artifacts", tags=["artifacts"])
    catalogue, blobs = context.catalogue, context.blobs
    signer = Signer(context.directory)
    settings = context.settings
    lifetime_seconds = settings.signed_url_seconds
    address = context.address

    async def readable(request: Request, artifact_id: str) -> ArtifactRow:
        """Find an artifact of a workspace that the key may read."""
        principal = await context.authenticator.principal(request.scope)
        found = await catalogue.find_artifact(artifact_id)
        if principal.role_in(found.workspace_id) < Role.VIEWER:
            raise NotFound(NO_ARTIFACT)
        return found

    @router.get("/{artifact_id}/url", responses=answers(200, SignedLink, "A link", 404))
    async def sign_url(request: Request, artifact_id: str) -> SignedLink:
        """Create a signed link to the content, which needs no key until it expires."""
        found = await readable(request, artifact_id)
        expires = context.kernel.store.clock.now_us() // MICROSECONDS + lifetime_seconds
        signature = await signer.sign(found.id, found.digest, expires)
        url = f"{address.of(request.scope)}/api/v1/artifacts/{found.id}/content"
        return {
            "url": f"{url}?expires={expires}&signature={signature}",
            "expires_at": rfc3339(expires * MICROSECONDS),
        }

    @router.get(
        "/{artifact_id}/content",
        response_class=Response,
        responses={
            **answers(200, None, "The bytes", 403, 404, 416, content=BYTES),
            206: {"description": "A range of the bytes", "content": BYTES},
            304: {"description": "Not changed"},
        },
    )
    async def read_artifact_content(
        request: Request,
        artifact_id: str,
        expires: Annotated[int | None, Query(ge=0, le=2**53)] = None,
        signature: Annotated[str | None, Query(max_length=100)] = None,
    ) -> Response:
        """Download an artifact, or a range of it; its ETag is its digest.

        A link with `expires` and `signature` needs no key.
        """
        if signature is None or expires is None:
            found = await readable(request, artifact_id)
        else:
            found = await catalogue.find_artifact(artifact_id)
            now = context.kernel.store.clock.now_us() / MICROSECONDS
            await signer.check(signature, found.id, found.digest, expires, now)
        return await download(
            request,
            await asyncio.to_thread(blobs.existing, found.digest),
            digest=found.digest,
            name=found.name.rpartition("/")[2],
            content_type=found.content_type,
        )

    router.head("/{artifact_id}/content", include_in_schema=False)(read_artifact_content)
    return router
