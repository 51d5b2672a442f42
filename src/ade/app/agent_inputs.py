"""What an agent may fetch: the inputs that the payload of its job names, and nothing else.

An input is named by an identifier or a digest that the payload holds as a value. So it is the
person who submitted the job, and not the agent, who says what the agent sees; and what is named is
looked for in the workspace of the job only. The bytes are fetched by a link that is valid for this
attempt for a while (`ade.app.attempt_proofs`), and only while the lease is held.
"""

import json
from collections.abc import Iterator
from typing import Any

from ade.app.agent_messages import (
    BlobMessage,
    DocumentMessage,
    EnvironmentMessage,
    FileMessage,
    PackageMessage,
)
from ade.app.attempt_proofs import AttemptProofs
from ade.app.catalogue import Catalogue
from ade.domain.build import BuildStatus
from ade.domain.errors import NotFound, Unavailable
from ade.kernel import Kernel
from ade.store.rows import JobRef, JobRow, LeaseRef

NOT_NAMED = "The payload of this job does not name that input."


class AgentInputs:
    """Find the inputs of jobs for the agents that hold them."""

    def __init__(self, kernel: Kernel, catalogue: Catalogue, proofs: AttemptProofs) -> None:
        self._kernel = kernel
        self._catalogue = catalogue
        self._proofs = proofs

    async def document(self, job: JobRow, document_id: str) -> DocumentMessage:
        """Describe a document that the job reads; also one that was deleted since."""
        await self._check_named(job, document_id)
        found = await self._catalogue.find_document(job.workspace_id, document_id, deleted_too=True)
        return DocumentMessage(found.name, await self._file(job, found.digest))

    async def package(self, job: JobRow, version_id: str) -> PackageMessage:
        """Describe the version of a configuration that the job uses."""
        await self._check_named(job, version_id)
        version = await self._catalogue.find_version(job.workspace_id, version_id)
        files = {file.path: await self._file(job, file.digest) for file in version.files}
        return PackageMessage(version.configuration_id, version.sequence, version.digest, files)

    async def blob(self, job: JobRow, digest: str) -> BlobMessage:
        """Describe bytes that the job reads."""
        await self._check_named(job, digest)
        await self._catalogue.check_bytes(job.workspace_id, digest)
        return BlobMessage(await self._file(job, digest))

    async def environment(self, job: JobRow, build_id: str) -> EnvironmentMessage:
        """Name the installed packages that a build made for the job."""
        await self._check_named(job, build_id)
        build = await self._catalogue.find_build(job.workspace_id, build_id)
        if build.status != BuildStatus.READY:
            raise Unavailable(f"The run's build is {build.status}.")
        return EnvironmentMessage(build.environment)

    async def _file(self, job: JobRow, digest: str) -> FileMessage:
        return FileMessage(digest, await self._proofs.link(lease_of(job), digest))

    async def _check_named(self, job: JobRow, name: str) -> None:
        ref = JobRef(job.workspace_id, job.id)
        payload = await self._kernel.read(lambda reading: reading.read_payload(ref))
        if name not in _texts(json.loads(payload or "{}").get("inputs")):
            raise NotFound(NOT_NAMED)


def lease_of(job: JobRow) -> LeaseRef:
    """Name the current attempt of a job."""
    return LeaseRef(job.workspace_id, job.id, job.fence)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict(fields):
                waiting.extend(fields.values())
            case list(items):
                waiting.extend(items)
