"""The output of containers: taken from agents in pieces by offset, and read while it grows.

The model. An agent sends raw bytes with their offset, under the token of its attempt. The token
proves the attempt; that it is the current one is looked up for each piece. A piece is appended to
a file (`ade.storage.attempt_logs`): output of megabytes per second has no place in the database.

    what an agent sends                        what happens
    -----------------------------------------  -------------------------------------------------
    a piece that is held already, or partly    what is new of it is appended
    a piece after a gap                        OutputGap, with the size that is held
    a piece of an earlier attempt, or with     StaleAttempt
    another token
    a piece after the end of the job           kept while no other attempt has begun: the end may
                                               have been recorded for an agent that was away
    the last piece                             it is on disk when the answer is sent
"""

import asyncio
import codecs
from collections.abc import AsyncIterator
from typing import NamedTuple

from ade.app.attempt_tokens import AttemptTokens
from ade.domain.agent_pool import is_agent_pool
from ade.domain.errors import StaleAttempt
from ade.domain.events import output_topic
from ade.domain.job import TERMINAL, Status
from ade.events.stream import HEARTBEAT_SECONDS, READ_SECONDS_MAX
from ade.kernel import Kernel
from ade.storage.attempt_logs import AttemptLogs, LogSlice, LogState
from ade.store.rows import JobRef, JobRow

READ_BYTES = 64 * 1024
TAIL_BYTES_MAX = 8 * 1024 * 1024


class AttemptProof(NamedTuple):
    """Hold the number and the token of an attempt, as its agent sends them."""

    attempt: int
    token: str


class FileText(NamedTuple):
    """Hold text of an attempt's output; `starts` and `ends` are places in the file, in bytes."""

    attempt: int
    starts: int
    ends: int
    at: int
    text: str


class AgentOutput:
    """Take and read the output of containers."""

    def __init__(self, kernel: Kernel, tokens: AttemptTokens, logs: AttemptLogs) -> None:
        self._kernel = kernel
        self._tokens = tokens
        self.logs = logs

    async def append(
        self, job: JobRow, proof: AttemptProof, offset_bytes: int, piece: bytes, *, is_last: bool
    ) -> LogState:
        """Append what is not held yet, or raise OutputGap or StaleAttempt."""
        await self._check(job, proof)
        state = await asyncio.to_thread(
            self.logs.append, job.id, proof.attempt, offset_bytes, piece
        )
        if is_last:
            await asyncio.to_thread(self.logs.sync, job.id)
        self._kernel.notifier.publish([output_topic(job.id)])
        return state

    async def held(self, job: JobRow, proof: AttemptProof) -> LogState:
        """Return how much of an attempt's output is held."""
        await self._check(job, proof)
        return await asyncio.to_thread(self.logs.held, job.id, proof.attempt)

    async def _check(self, job: JobRow, proof: AttemptProof) -> None:
        await self._tokens.check(job.id, *proof)
        if job.fence != proof.attempt:
            raise StaleAttempt(
                f"Attempt {proof.attempt} is over: attempt {job.fence} is the current one."
            )

    # --- for those who read -----------------------------------------------------------------------

    async def has_file(self, job: JobRow) -> bool:
        """Tell whether the output of a job is a file here."""
        if not is_agent_pool(job.pool):
            return False
        return await asyncio.to_thread(self.logs.size, job.id) is not None

    async def look(
        self, job: JobRow, start: int, bytes_max: int, attempt: int | None = None
    ) -> LogSlice | None:
        """Return output from a place on; None if there is none."""
        return await asyncio.to_thread(self.logs.look, job.id, start, bytes_max, attempt)

    async def stream(
        self, job: JobRow, start: int = 0, attempt: int | None = None
    ) -> AsyncIterator[bytes]:
        """Yield what one attempt has written so far."""
        while part := await self.look(job, start, READ_BYTES, attempt):
            if not part.piece or (attempt is not None and part.attempt not in (None, attempt)):
                return
            attempt = part.attempt if attempt is None else attempt
            start += len(part.piece)
            yield part.piece

    async def tail(self, job: JobRow, attempt: int | None = None) -> str:
        """Return the end of what an attempt has written."""
        known = await self.look(job, 0, 0, attempt)
        if known is None:
            return ""
        start = max(known.size_bytes - TAIL_BYTES_MAX, 0)
        part = await self.look(job, start, TAIL_BYTES_MAX, attempt)
        return "" if part is None else part.piece.decode("utf-8", "replace")

    async def texts(
        self, job: JobRow, attempt: int = 0, start: int = 0, *, has_ended: bool = True
    ) -> AsyncIterator[FileText]:
        """Yield what was written after a place in an attempt; from a later attempt, all of it.

        A character whose last bytes are missing is left for the next time, unless all has ended.
        """
        while part := await self.look(job, start, READ_BYTES):
            number = part.attempt or job.fence
            if number != attempt:
                if attempt and start:
                    attempt, start = number, 0
                    continue
                attempt = number
            text, size_bytes = _whole(part.piece, is_all=has_ended and len(part.piece) < READ_BYTES)
            if not size_bytes:
                return
            yield FileText(attempt, start, start + size_bytes, part.written_at, text)
            start += size_bytes

    async def follow(
        self,
        job: JobRow,
        attempt: int = 0,
        start: int = 0,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> AsyncIterator[FileText | None]:
        """Yield texts in order until the job has ended and all were yielded; None: alive."""
        ref = JobRef(job.workspace_id, job.id)
        now = asyncio.get_running_loop().time
        with self._kernel.notifier.subscribe(output_topic(job.id), job.id) as subscription:
            quiet_since = now()
            while True:
                current = await self._kernel.read(lambda reading: reading.read_job(ref))
                has_ended = current is None or Status(current.status) in TERMINAL
                async for text in self.texts(current or job, attempt, start, has_ended=has_ended):
                    attempt, start, quiet_since = text.attempt, text.ends, now()
                    yield text
                if has_ended:
                    return
                await subscription.wait(min(READ_SECONDS_MAX, heartbeat_seconds))
                if now() - quiet_since >= heartbeat_seconds:
                    quiet_since = now()
                    yield None


def _whole(piece: bytes, *, is_all: bool) -> tuple[str, int]:
    """Decode the whole characters of a piece, and say how many bytes they are."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(piece, final=is_all)
    left, _ = decoder.getstate()
    return text, len(piece) - len(left)
