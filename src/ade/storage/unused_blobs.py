"""Delete blobs that nothing refers to any more."""

import asyncio
import time
from collections.abc import Collection
from typing import Protocol

import structlog

from ade.clock import FileClock
from ade.storage.blobs import Blobs
from ade.storage.remote_blobs import OLD_SECONDS

FIRST_SECONDS = 60.0
EVERY_SECONDS = 600.0
# Listing much object storage takes long and costs money: it is looked through more rarely then.
REST_SHARE = 20
log = structlog.get_logger()


class BlobReferences(Protocol):
    """Know which blobs are needed."""

    async def digests_in_use(self) -> Collection[str]:
        """Return the digests of all blobs that something refers to."""
        ...


async def collect_blobs(blobs: Blobs, references: BlobReferences, now: float | None = None) -> int:
    """Delete what is not in use and older than an hour; return how many files that were.

    Several servers may do so at once. The references are read first: a blob that is referred to
    later was written later, and is young.
    """
    in_use = await references.digests_in_use()
    at = time.time() if now is None else now  # noqa: TID251 - compared with the dates of files
    gone = await asyncio.to_thread(blobs.collect, in_use, at)
    if gone:
        log.info("collected", blobs=gone)
    return gone


async def collect_for_ever(blobs: Blobs, references: BlobReferences) -> None:
    """Collect now and then until cancelled; trouble is logged and tried again.

    After a step of the wall clock the dates of young files may say that they are old: nothing is
    collected until every blob that was written before the step is old in any case.
    """
    clock = FileClock()
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        began = time.monotonic()
        try:
            if clock.steady_seconds() > OLD_SECONDS:
                await collect_blobs(blobs, references)
        except Exception as error:
            log.warning("cannot collect blobs", reason=type(error).__name__)
        await asyncio.sleep(max(EVERY_SECONDS, REST_SHARE * (time.monotonic() - began)))
