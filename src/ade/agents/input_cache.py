"""The inputs that an agent has fetched: a folder of blobs with a bound on its size.

The bytes are known by their digest and never change, so what one job fetched serves the next. They
get their name only if the digest is right. Over the limit, the files that were unused longest are
deleted, but none that was used within ten minutes: an attempt may be about to link it into its
folder. A download that is cut goes on where it stopped.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from weakref import WeakValueDictionary

import httpx
import structlog

from ade.agents.server_calls import ServerCalls, away, error_of
from ade.domain.errors import Unavailable
from ade.domain.units import MIB
from ade.storage import Blobs, BlobWriter
from ade.storage.blobs import touch

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0)
JUST_USED_SECONDS = 600.0
INPUT_BYTES_MAX = 1 << 40
log = structlog.get_logger()


class InputCache:
    """Keep what jobs read, up to a size."""

    def __init__(self, root: Path, calls: ServerCalls, bytes_max: int) -> None:
        self._root = root
        self._blobs = Blobs(root)
        self._calls = calls
        self._bytes_max = bytes_max
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def fetched(self, digest: str, url: str) -> Path:
        """Return where bytes are, fetching them first if need be."""
        path = self._blobs.path(digest)
        lone = self._fetching.setdefault(digest, asyncio.Lock())
        async with lone:
            if not await asyncio.to_thread(touch, path):
                await self._fetch(digest, url)
                await asyncio.to_thread(self._trim)
        return path

    async def add(self, path: Path, digest: str) -> None:
        """Keep a copy of bytes that this host made itself."""
        if await asyncio.to_thread(self._blobs.has, digest):
            return

        def copy() -> None:
            with path.open("rb") as source:
                self._blobs.write(iter(lambda: source.read(MIB), b""), INPUT_BYTES_MAX)

        await asyncio.to_thread(copy)
        await asyncio.to_thread(self._trim)

    async def _fetch(self, digest: str, url: str) -> None:
        with await asyncio.to_thread(self._blobs.begin, INPUT_BYTES_MAX) as writing:
            for pause_seconds in (*PAUSES_SECONDS, None):
                try:
                    await self._go_on(writing, url)
                    break
                except Unavailable as error:
                    if pause_seconds is None:
                        raise
                    log.info("input not fetched yet", digest=digest, reason=error.detail)
                    await asyncio.sleep(pause_seconds)
            if writing.digest != digest:
                raise Unavailable(f"The bytes that the server sent are not those of {digest}.")
            await asyncio.to_thread(writing.settle)

    async def _go_on(self, writing: BlobWriter, url: str) -> None:
        """Fetch what is missing; the bytes of a digest are the same whenever they are asked for."""
        headers = {"Range": f"bytes={writing.size_bytes}-"} if writing.size_bytes else {}
        try:
            async with self._calls.http.stream("GET", url, headers=headers) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response)
                skipped = 0 if response.status_code == 206 else writing.size_bytes
                async for piece in _after(response.aiter_raw(), skipped):
                    await asyncio.to_thread(writing.add, piece)
        except httpx.HTTPError as error:
            raise away(error) from None

    def _trim(self) -> None:
        found = []
        for path in self._root.glob("sha256/*/*"):
            with contextlib.suppress(FileNotFoundError):
                facts = path.stat()
                found.append((facts.st_mtime, facts.st_size, path))
        over_bytes = sum(size for _, size, _ in found) - self._bytes_max
        now = time.time()  # noqa: TID251 - compared with the dates of files
        for used_at, size, path in sorted(found):
            if over_bytes <= 0 or used_at >= now - JUST_USED_SECONDS:
                break
            path.unlink(missing_ok=True)
            over_bytes -= size


async def _after(pieces: AsyncIterator[bytes], skipped: int) -> AsyncIterator[bytes]:
    """Leave out the first bytes."""
    async for piece in pieces:
        kept = piece[skipped:]
        skipped = max(skipped - len(piece), 0)
        if kept:
            yield kept
