"""Store what an attempt writes while it runs.

The model. What the runner reads goes into a buffer (`ade.worker.output_buffer`). The first text
begins a task that stores what has gathered every FLUSH_SECONDS, or as soon as a whole batch waits,
and that ends when nothing is left; a job that writes nothing costs nothing. Calls of several jobs
commit together. The end of the attempt takes along what was not stored yet, in the transaction that
records the end.

    what happens                        what becomes of the output
    ----------------------------------  ----------------------------------------------------------
    the database is away                it is kept here, within the limit of the log, and sent again
    the answer to a call is lost        it is sent again; the store passes over what it has
    the lease is lost                   nothing more is stored; what was stored stays
    the worker dies                     what was not stored is lost: about the last FLUSH_SECONDS
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from ade.domain.errors import LeaseLost
from ade.domain.output import Stream
from ade.domain.units import KIB
from ade.stages.output import OutputAppend
from ade.store.rows import LeaseRef
from ade.worker.output_buffer import OutputBuffer

FLUSH_SECONDS = 0.3
TROUBLE_SECONDS = 1.0
STREAM_COUNT = 2  # each of stdout and stderr may have `max_output_kb`
log = structlog.get_logger()


class AttemptOutput:
    """Gather the output of one attempt, and store it in batches."""

    def __init__(
        self,
        lease: LeaseRef,
        max_output_kb: int,
        store: Callable[[OutputAppend], Awaitable[None]],
    ) -> None:
        self._lease = lease
        self._store = store
        self._buffer = OutputBuffer(STREAM_COUNT * max_output_kb * KIB)
        self._due = asyncio.Event()
        self._storing: asyncio.Task[None] | None = None
        self._last_step = ""

    def take(self, stream: str, data: bytes) -> None:
        """Take what a stream wrote."""
        self._buffer.take(stream, data)
        if self._buffer.is_due:
            self._due.set()
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_until_empty())

    def take_step(self, message: str) -> None:
        """Take what is being done for the job now, unless that was said before."""
        if message and message != self._last_step:
            self._last_step = message
            self.take(Stream.STEP, f"{message}\n".encode(errors="replace"))

    async def close(self) -> OutputAppend | None:
        """Stop storing, and return what is left for the transaction that records the end."""
        if self._storing is not None:
            # A call that is on its way still takes place; what it stores is passed over later.
            self._storing.cancel()
            await asyncio.wait([self._storing])
        self._buffer.end()
        return None if self._buffer.is_empty else self._append()

    def _append(self) -> OutputAppend:
        return OutputAppend(self._lease, *self._buffer.unstored())

    async def _store_until_empty(self) -> None:
        wait_seconds = FLUSH_SECONDS
        while not self._buffer.is_empty:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    await self._due.wait()
            self._due.clear()
            append = self._append()
            try:
                await self._store(append)
            except LeaseLost:
                return  # the attempt has been given up
            except Exception as error:
                log.info("output not stored yet", reason=type(error).__name__)
                wait_seconds = TROUBLE_SECONDS
            else:
                self._buffer.stored(append.batches)
                wait_seconds = FLUSH_SECONDS
