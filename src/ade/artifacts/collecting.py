"""Delete bytes that nobody refers to any more."""

import asyncio
import time

import structlog

from ade.app.catalogue import Catalogue
from ade.artifacts.blobs import Blobs

FIRST_SECONDS = 60.0
EVERY_SECONDS = 600.0
# Listing much object storage takes long and costs money: it is looked through more rarely then.
REST_SHARE = 20
log = structlog.get_logger()


async def collect_blobs(blobs: Blobs, library: Catalogue, now: float | None = None) -> int:
    """Delete what is not in use and older than an hour; return how many files that were.

    Several servers may do so at once. What is in use is asked first: what becomes needed after
    that was written after that, and is young.
    """
    in_use = await library.digests_in_use()
    at = time.time() if now is None else now
    gone = await asyncio.to_thread(blobs.collect, in_use, at)
    if gone:
        log.info("collected", blobs=gone)
    return gone


async def collect_for_ever(blobs: Blobs, library: Catalogue) -> None:
    """Collect now and then until cancelled; trouble is logged and tried again."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        began = time.monotonic()
        try:
            await collect_blobs(blobs, library)
        except Exception as error:
            log.warning("cannot collect blobs", reason=type(error).__name__)
        await asyncio.sleep(max(EVERY_SECONDS, REST_SHARE * (time.monotonic() - began)))
