"""Tokens of attempts: they prove that a message comes from the attempt that it names.

A token is a MAC over job and attempt, by a secret that all servers of the database share. It
expires with the attempt: whether that is the current one is for the kernel to say.
"""

import base64
import hashlib
import hmac

from ade.app.directory import Directory
from ade.domain.errors import StaleAttempt

SECRET = "agent-attempts"
TOKEN_BYTES = 24


class AttemptTokens:
    """Make and check the tokens of attempts."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._secret: bytes | None = None

    async def issue(self, job_id: str, attempt: int) -> str:
        """Return the token of an attempt."""
        if self._secret is None:
            self._secret = await self._directory.secret(SECRET)
        named = f"{job_id.lower()} {attempt}".encode()
        mac = hmac.digest(self._secret, named, hashlib.sha256)[:TOKEN_BYTES]
        return base64.urlsafe_b64encode(mac).decode()

    async def check(self, job_id: str, attempt: int, token: str) -> None:
        """Raise StaleAttempt if a token is not that of this attempt."""
        right = await self.issue(job_id, attempt)
        if not hmac.compare_digest(right.encode(), token.encode("utf-8", "replace")):
            raise StaleAttempt("The attempt_token is not that of this attempt.")
