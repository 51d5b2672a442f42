"""Send the files that attempts leave to the server, and remember its receipts.

A file is sent whole. If the connection is cut it is sent again: the server keeps the same bytes
once, and nothing refers to them before an end was accepted that names them.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType

import httpx
import structlog

from ade.agents.server_calls import ServerCalls, away, error_of, read_answer
from ade.app.agent_messages import ReceiptMessage
from ade.domain.errors import Unavailable
from ade.domain.units import MIB
from ade.store.rows import LeaseRef

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0)
# The server answers once the bytes are in its storage, which may be another network away.
STORED_TIMEOUT = httpx.Timeout(30.0, read=600.0)
OCTETS = "application/octet-stream"
log = structlog.get_logger()


class Uploads:
    """Send files, each under the lease of its attempt."""

    def __init__(self, calls: ServerCalls) -> None:
        self._calls = calls
        self._receipts: dict[LeaseRef, dict[str, str]] = {}

    async def send(self, lease: LeaseRef, digest: str, path: Path, size_bytes: int) -> None:
        """Send a file until the server has it; raise Unavailable if it cannot be reached."""
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                receipt = await self._sent(lease, digest, path, size_bytes)
            except Unavailable as error:
                if pause_seconds is None:
                    raise
                log.info("file not sent yet", digest=digest, reason=error.detail)
                await asyncio.sleep(pause_seconds)
            else:
                self._receipts.setdefault(lease, {})[digest] = receipt
                return

    async def _sent(self, lease: LeaseRef, digest: str, path: Path, size_bytes: int) -> str:
        headers = {"Content-Type": OCTETS, "Content-Length": str(size_bytes)}
        url = f"/api/agent/{place_of(lease, digest)}"
        try:
            response = await self._calls.http.put(
                url, content=_pieces(path), headers=headers, timeout=STORED_TIMEOUT
            )
        except (httpx.HTTPError, httpx.StreamError) as error:  # or it would be read twice
            raise away(error) from None
        if not response.is_success:
            raise error_of(response)
        answer: ReceiptMessage = read_answer(ReceiptMessage, response.content)
        return answer.receipt

    def receipts(self, lease: LeaseRef) -> Mapping[str, str]:
        """Return the receipts for the files of an attempt, by their digests."""
        return MappingProxyType(self._receipts.get(lease, {}))

    def forget(self, lease: LeaseRef) -> None:
        """Forget the receipts of an attempt that has ended."""
        self._receipts.pop(lease, None)


def place_of(lease: LeaseRef, digest: str) -> str:
    """Return the path at which an attempt fetches or leaves bytes."""
    return f"files/{lease.workspace_id}/{lease.id}/{lease.fence}/{digest}"


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, MIB):
            yield piece
