"""Proofs that a server made a statement about a file of an attempt, for servers that did not.

The model. A *link* says that an attempt may fetch the bytes with a digest until a time; a *receipt*
says that an attempt has sent the bytes with a digest. Both are MACs by a secret that all servers of
the database share, so that any of them can check what another one said, and nothing is written.
A proof names job and fence: it is of no use to another attempt.

The rule about time. Bytes that nothing refers to may be collected an hour after they were written
(`ade.storage.blobs`). A receipt is valid for half of that, so bytes that it vouches for are there.
"""

import base64
import hashlib
import hmac

from ade.app.directory import Directory
from ade.clock import Clock
from ade.domain.errors import Conflict, Forbidden
from ade.domain.units import MICROSECONDS
from ade.store.rows import LeaseRef

SECRET = "agent-files"
LINK_SECONDS = 900
RECEIPT_SECONDS = 1800
MAC_BYTES = 24
NOT_VALID = "The link is not valid or has expired; ask for the input again."


class ArtifactMissing(Conflict):
    """The bytes of an artifact were not uploaded by this attempt."""

    code = "artifact_missing"


class AttemptProofs:
    """Make and check links and receipts."""

    def __init__(self, directory: Directory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._secret: bytes | None = None

    async def link(self, lease: LeaseRef, digest: str) -> str:
        """Return a proof that an attempt may fetch these bytes, for a while."""
        return await self._made("link", lease, digest, 0, self._now() + LINK_SECONDS)

    async def check_link(self, lease: LeaseRef, digest: str, proof: str) -> None:
        """Raise Forbidden unless the attempt may fetch these bytes now."""
        until = _moment(proof)
        right = await self._made("link", lease, digest, 0, until)
        if not hmac.compare_digest(right.encode(), proof.encode("utf-8", "replace")):
            raise Forbidden(NOT_VALID)
        if self._now() >= until:
            raise Forbidden(NOT_VALID)

    async def receipt(self, lease: LeaseRef, digest: str, size_bytes: int) -> str:
        """Return a proof that an attempt has sent these bytes."""
        return await self._made("receipt", lease, digest, size_bytes, self._now())

    async def check_receipt(
        self, lease: LeaseRef, digest: str, size_bytes: int, proof: str
    ) -> None:
        """Raise ArtifactMissing unless the attempt has sent these bytes lately."""
        at = _moment(proof)
        right = await self._made("receipt", lease, digest, size_bytes, at)
        genuine = hmac.compare_digest(right.encode(), proof.encode("utf-8", "replace"))
        if not genuine or self._now() >= at + RECEIPT_SECONDS:
            raise ArtifactMissing(
                f"This attempt did not upload {digest} ({size_bytes} bytes), or too long ago;"
                " upload it again."
            )

    def _now(self) -> int:
        return self._clock.now_us() // MICROSECONDS

    async def _made(
        self, purpose: str, lease: LeaseRef, digest: str, size_bytes: int, at: int
    ) -> str:
        if self._secret is None:
            self._secret = await self._directory.secret(SECRET)
        named = "\n".join((purpose, *map(str, lease), digest, str(size_bytes), str(at)))
        mac = hmac.digest(self._secret, named.encode(), hashlib.sha256)[:MAC_BYTES]
        return f"{at}.{base64.urlsafe_b64encode(mac).decode()}"


def _moment(proof: str) -> int:
    at = proof.partition(".")[0]
    return int(at) if at.isascii() and at.isdigit() and len(at) <= 12 else 0
