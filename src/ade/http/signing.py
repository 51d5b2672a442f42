"""Signed links: each gives access to one artifact until a time, and cannot be altered."""

import base64
import hashlib
import hmac

from ade.app.directory import Directory
from ade.domain.errors import Forbidden

SECRET = "signed-links"
PURPOSE = b"ade artifact 1"
NOT_VALID = "The link is not valid or has expired; request a new one."


class Signer:
    """Sign and check links, with a secret that all servers of a database share."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._secret: bytes | None = None

    async def sign(self, artifact_id: str, digest: str, expires: int) -> str:
        """Return the signature of a link that expires at a second since the epoch."""
        return _signature(await self._key(), artifact_id, digest, expires)

    async def check(
        self, signature: str, artifact_id: str, digest: str, expires: int, now: float
    ) -> None:
        """Raise Forbidden unless the signature is valid and the link has not expired."""
        expected = _signature(await self._key(), artifact_id, digest, expires)
        genuine = hmac.compare_digest(signature.encode(), expected.encode())
        if not genuine or now >= expires:
            raise Forbidden(NOT_VALID)

    async def _key(self) -> bytes:
        if self._secret is None:
            self._secret = await self._directory.secret(SECRET)
        return self._secret


def _signature(secret: bytes, artifact_id: str, digest: str, expires: int) -> str:
    message = b"\n".join((PURPOSE, artifact_id.encode(), digest.encode(), str(expires).encode()))
    signature = hmac.new(secret, message, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
