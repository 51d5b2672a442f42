"""`/api/agent/inputs` and `/api/agent/files`: what jobs on agents read, and what they leave.

Every request names an attempt by workspace, job and fence, and is answered only while the agent
holds that lease. The bytes of an input need a link besides, which the server gave to this attempt
for an input that the job's payload names.
"""

import asyncio
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from ade.app.agent_environments import AgentEnvironments
from ade.app.agent_inputs import AgentInputs
from ade.app.agent_leases import AgentLeases
from ade.app.agent_messages import (
    ArchiveMessage,
    BlobMessage,
    DocumentMessage,
    EnvironmentMessage,
    InputMessage,
    KnownEnvironmentMessage,
    MadeEnvironmentMessage,
    PackageMessage,
    ReceiptMessage,
)
from ade.app.agent_uploads import AgentUploads
from ade.app.attempt_proofs import AttemptProofs
from ade.domain.errors import LeaseLost
from ade.domain.ids import is_uuid
from ade.http.body import parse, read_body, read_small
from ade.http.contract.agent_jobs import MESSAGE_BYTES_MAX, agent_name
from ade.http.contract.callers import Callers
from ade.http.download import download
from ade.storage import Blobs
from ade.store.rows import JobRow, LeaseRef

FENCE_MAX = 2**31 - 1
_INPUT = TypeAdapter(InputMessage)
_MADE = TypeAdapter(MadeEnvironmentMessage)
_ANSWERS = {
    message: TypeAdapter[Any](message)
    for message in (
        DocumentMessage,
        PackageMessage,
        BlobMessage,
        EnvironmentMessage,
        ArchiveMessage,
        KnownEnvironmentMessage,
        ReceiptMessage,
    )
}
Fence = Annotated[int, Path(ge=1, le=FENCE_MAX)]
Digest = Annotated[str, Path(pattern=r"^sha256:[0-9a-f]{64}$")]


class AgentFiles(NamedTuple):
    """Hold what finds inputs and takes files."""

    leases: AgentLeases
    inputs: AgentInputs
    uploads: AgentUploads
    environments: AgentEnvironments
    proofs: AttemptProofs


def agent_file_routes(files: AgentFiles, callers: Callers, blobs: Blobs) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/agent", tags=["agents"])

    async def requested(request: Request) -> tuple[JobRow, str]:
        """Find the job of which a request asks for an input, and the input's name."""
        name = await agent_name(callers, request.scope)
        message = await read_small(request, _INPUT)
        return await files.leases.held(name, message.lease), message.name

    @router.post("/inputs/document")
    async def describe_document(request: Request) -> Response:
        """Describe a document that a job reads."""
        return _json(await files.inputs.document(*await requested(request)))

    @router.post("/inputs/package")
    async def describe_package(request: Request) -> Response:
        """Describe the version of a configuration that a job uses."""
        return _json(await files.inputs.package(*await requested(request)))

    @router.post("/inputs/blob")
    async def describe_blob(request: Request) -> Response:
        """Describe bytes that a job reads."""
        return _json(await files.inputs.blob(*await requested(request)))

    @router.post("/inputs/environment")
    async def describe_environment(request: Request) -> Response:
        """Describe the installed packages that a job's build made."""
        return _json(await files.inputs.environment(*await requested(request)))

    @router.post("/inputs/environment-archive")
    async def describe_archive(request: Request) -> Response:
        """Describe the archive of the installed packages that a job's build made."""
        return _json(await files.environments.archive(*await requested(request)))

    @router.post("/environments")
    async def take_environment(request: Request) -> Response:
        """Record the archive of what a build installed, or say whether there is one."""
        name = await agent_name(callers, request.scope)
        body = await read_body(request.scope, request.receive, MESSAGE_BYTES_MAX)
        message: MadeEnvironmentMessage = parse(body, _MADE)
        job = await files.leases.held(name, message.lease)
        return _json(await files.environments.made(job, message))

    @router.get("/files/{workspace_id}/{job_id}/{fence}/{digest}")
    async def read_input(
        request: Request,
        workspace_id: str,
        job_id: str,
        fence: Fence,
        digest: Digest,
        link: Annotated[str, Query(max_length=100)],
    ) -> Response:
        """Download an input of a job, or a range of it."""
        name = await agent_name(callers, request.scope)
        lease = _lease(workspace_id, job_id, fence)
        await files.proofs.check_link(lease, digest, link)
        await files.leases.held(name, lease)
        path = await asyncio.to_thread(blobs.existing, digest)
        return await download(request, path, digest=digest, name=path.name)

    @router.put("/files/{workspace_id}/{job_id}/{fence}/{digest}", status_code=201)
    async def take_file(
        request: Request, workspace_id: str, job_id: str, fence: Fence, digest: Digest
    ) -> Response:
        """Take a file that a job left, and answer with a receipt; repeating it is harmless."""
        name = await agent_name(callers, request.scope)
        job = await files.leases.held(name, _lease(workspace_id, job_id, fence))
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise HTTPException(411, "Say with Content-Length how long the file is.")
        receipt = await files.uploads.take(job, digest, int(length[:18]), request.stream())
        answer = _json(receipt)
        answer.status_code = 201
        return answer

    return router


def _lease(workspace_id: str, job_id: str, fence: int) -> LeaseRef:
    if not (is_uuid(workspace_id) and is_uuid(job_id)):
        raise LeaseLost("There is no such attempt.")
    return LeaseRef(workspace_id.lower(), job_id.lower(), fence)


def _json(value: Any) -> Response:
    return Response(_ANSWERS[type(value)].dump_json(value), media_type="application/json")
