"""The files that attempts on agents leave: taken under the fence, and checked before they count.

The model. An agent sends each file by its digest, and gets a receipt for it. The end of the attempt
names the files with their receipts. What is not named by an end that was accepted is referred to by
nothing, and is collected like every unused blob.

    what an agent sends                        what happens
    -----------------------------------------  -------------------------------------------------
    bytes of another digest or size            422, nothing is kept
    more than a job may leave, or than the     413, 507, nothing is kept
    workspace may store
    the same bytes again                       they are kept once, and get another receipt
    an end with a file that this attempt did   409 artifact_missing; the attempt has not ended
    not send, or whose bytes are gone
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from ade.app.agent_inputs import lease_of
from ade.app.agent_messages import ArtifactMessage, ReceiptMessage
from ade.app.artifacts import artifact_of
from ade.app.attempt_proofs import ArtifactMissing, AttemptProofs
from ade.app.catalogue import Catalogue
from ade.clock import Clock, new_id
from ade.domain.build import KIND as BUILD
from ade.domain.build import environment_made
from ade.domain.errors import InvalidRequest, PayloadTooLarge, StorageFull, Unavailable, UnsafePath
from ade.domain.outcome import Artifact, Outcome, OutputFile
from ade.domain.units import MIB
from ade.settings import Settings
from ade.storage import Blob, Blobs
from ade.storage.blob_keys import DIGEST
from ade.store.rows import JobRow, LeaseRef

# As much as a sandbox lets one job leave: its artifacts, and the outputs that its kind names.
ARTIFACT_BYTES_MAX = 2 * 256 * MIB
NAMED_OUTPUTS_MAX = 20
# A file may be sent again when an answer was lost.
SENDINGS_MAX = 3
ATTEMPTS_REMEMBERED_MAX = 10_000
UPLOADS_MAX = 64
NAME_CHARS_MAX = 255
NAME_DEPTH_MAX = 8


class AgentUploads:
    """Take the files of attempts, and accept them with the end of the attempt."""

    def __init__(
        self,
        catalogue: Catalogue,
        blobs: Blobs,
        proofs: AttemptProofs,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._catalogue = catalogue
        self._blobs = blobs
        self._proofs = proofs
        self._settings = settings
        self._clock = clock
        self._taken_bytes: dict[LeaseRef, int] = {}
        self._under_way = 0

    async def take(
        self, job: JobRow, digest: str, size_bytes: int, pieces: AsyncIterator[bytes]
    ) -> ReceiptMessage:
        """Keep the bytes that an attempt sends; what is not as announced leaves nothing."""
        if not DIGEST.fullmatch(digest):
            raise InvalidRequest("A digest is sha256: followed by 64 hexadecimal digits.")
        self._check_size(job, size_bytes)
        if job.kind != BUILD:  # environments belong to all workspaces
            await self._check_quota(job.workspace_id, size_bytes)
        if self._under_way >= UPLOADS_MAX:
            raise Unavailable(f"{UPLOADS_MAX} files are being uploaded already; try again shortly.")
        self._under_way += 1
        try:
            blob = await self._write(digest, size_bytes, pieces)
        finally:
            self._under_way -= 1
        self._count(lease_of(job), blob.size_bytes)
        receipt = await self._proofs.receipt(lease_of(job), blob.digest, blob.size_bytes)
        return ReceiptMessage(receipt)

    async def _write(self, digest: str, size_bytes: int, pieces: AsyncIterator[bytes]) -> Blob:
        with await asyncio.to_thread(self._blobs.begin, size_bytes) as writing:
            async for piece in pieces:
                await asyncio.to_thread(writing.add, piece)
            if (writing.digest, writing.size_bytes) != (digest, size_bytes):
                raise InvalidRequest(
                    f"The bytes that arrived are {writing.digest} ({writing.size_bytes} bytes),"
                    f" not {digest} ({size_bytes} bytes); nothing was kept."
                )
            return await asyncio.to_thread(writing.keep)

    def bytes_max(self, job: JobRow) -> int:
        """Return how much one attempt of a job may leave; a build leaves its environment too."""
        environment_mb = self._settings.environment_max_mb if job.kind == BUILD else 0
        return ARTIFACT_BYTES_MAX + environment_mb * MIB

    def _check_size(self, job: JobRow, size_bytes: int) -> None:
        bytes_max = self.bytes_max(job)
        taken_bytes = self._taken_bytes.get(lease_of(job), 0)
        if size_bytes > bytes_max or taken_bytes + size_bytes > SENDINGS_MAX * bytes_max:
            raise PayloadTooLarge(f"A job may leave at most {bytes_max // MIB} MiB here.")

    def _count(self, lease: LeaseRef, size_bytes: int) -> None:
        taken_bytes = self._taken_bytes.pop(lease, 0)
        while len(self._taken_bytes) >= ATTEMPTS_REMEMBERED_MAX:
            del self._taken_bytes[next(iter(self._taken_bytes))]
        self._taken_bytes[lease] = taken_bytes + size_bytes

    async def _check_quota(self, workspace_id: str, size_bytes: int) -> None:
        quota_bytes = self._settings.workspace_storage_mb * MIB
        if not quota_bytes:
            return
        if await self._catalogue.stored_bytes(workspace_id) + size_bytes > quota_bytes:
            raise StorageFull(
                f"The workspace may store at most {quota_bytes // MIB} MiB"
                " (ADE_WORKSPACE_STORAGE_MB), and the files of this job do not fit any more."
            )

    async def accept(self, job: JobRow, named: Sequence[ArtifactMessage]) -> tuple[Artifact, ...]:
        """Return the artifacts that the end of an attempt names, or raise why it may not."""
        if not named:
            return ()
        files_max = json.loads(job.limits)["max_artifacts"] + NAMED_OUTPUTS_MAX
        if len(named) > files_max:
            raise PayloadTooLarge(f"This job may leave at most {files_max} files.")
        if len({one.name for one in named}) < len(named):
            raise InvalidRequest("Two artifacts have the same name.")
        sizes = {one.digest: one.size_bytes for one in named}
        if sum(one.size_bytes for one in named) > self.bytes_max(job):
            raise PayloadTooLarge(f"A job may leave at most {self.bytes_max(job) // MIB} MiB here.")
        await self._check_quota(job.workspace_id, sum(sizes.values()))
        return tuple([await self._accepted(job, one) for one in named])

    async def _accepted(self, job: JobRow, named: ArtifactMessage) -> Artifact:
        _check_name(named.name)
        await self.check_sent(job, named.digest, named.size_bytes, named.receipt)
        file = OutputFile(
            named.name,
            self._blobs.path(named.digest),
            named.size_bytes,
            named.digest,
            named.kind,
            named.metadata,
        )
        return artifact_of(file, new_id(self._clock), self._blobs.uri(named.digest))

    async def check_build(self, outcome: Outcome) -> None:
        """Raise ArtifactMissing if a build names an environment that no archive holds."""
        report = (outcome.result or {}).get("outputs", {}).get("result_json")
        made = environment_made(outcome.result)
        if not isinstance(report, dict) or report.get("environment") != made:
            raise InvalidRequest("outputs.result_json: a build reports there what it made.")
        if made is not None and await self._catalogue.environments.find(made) is None:
            raise ArtifactMissing(f"The environment {made[:80]!a} of this build was not sent.")

    async def check_sent(self, job: JobRow, digest: str, size_bytes: int, receipt: str) -> None:
        """Raise ArtifactMissing unless this attempt sent these bytes, and they are there."""
        await self._proofs.check_receipt(lease_of(job), digest, size_bytes, receipt)
        if not await asyncio.to_thread(self._blobs.has, digest):
            raise ArtifactMissing(f"The bytes of {digest} are not there any more; upload it again.")


def _check_name(name: str) -> None:
    parts = name.split("/")
    if (
        len(name) > NAME_CHARS_MAX
        or len(parts) > NAME_DEPTH_MAX
        or not name.isprintable()
        or "\\" in name
        or any(part in ("", ".", "..") for part in parts)
    ):
        raise UnsafePath(f"{ascii(name)[:NAME_CHARS_MAX]} cannot be the name of an artifact.")
