"""Deliver what an attempt leaves to the server: its output while it grows, then its end.

The model. Both are on disk before they are sent, and stay there until the server has answered. The
output goes first, so that whoever reads the end can read all of it. A server that is away is tried
again for as long as it takes; one that refuses, because the attempt is over, gets nothing more.

    what the server answers                 what happens
    --------------------------------------  ------------------------------------------------------
    nothing, or that it cannot now          again, later each time, at random
    a gap: it has less than was sent        again from the place that it names
    that its limit of output is reached     the rest stays here until the end is delivered
    that the attempt is over                no more is sent, and the folder is deleted
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from ade.agents.containers.attempt_folder import END, AttemptFolder, OutputSpool
from ade.agents.containers.order import AGENT_RESTARTED
from ade.agents.contract_calls import Backoff, ContractCalls
from ade.domain.errors import (
    AdeError,
    InvalidTransition,
    NotFound,
    OutputGap,
    StorageFull,
    Unavailable,
)
from ade.domain.vocabulary import AgentStatus
from ade.storage.attempt_logs import AttemptLogs, LogState

PIECE_BYTES = 256 * 1024
GATHER_SECONDS = 0.5  # how long less than a piece waits for more
IDLE_SECONDS = 60.0
HANDED_BACK_LATE = {
    "status": AgentStatus.FAILED.value,
    "error": "The agent was restarted before the container was started.",
    "details": {"code": AGENT_RESTARTED},
}
log = structlog.get_logger()


class OutputSink(Protocol):
    """Take the output of one attempt by its offset."""

    async def append(self, offset_bytes: int, piece: bytes, *, is_last: bool) -> LogState:
        """Append what is new, or raise OutputGap."""
        ...

    async def held(self) -> LogState:
        """Say how much there is."""
        ...


class HttpOutput:
    """Send output to the server."""

    def __init__(self, calls: ContractCalls, proof: Mapping[str, Any]) -> None:
        self._calls = calls
        self._proof = proof

    async def append(self, offset_bytes: int, piece: bytes, *, is_last: bool) -> LogState:
        """Send a piece."""
        return await self._calls.append_output(self._proof, offset_bytes, piece, is_last=is_last)

    async def held(self) -> LogState:
        """Ask the server; why it refuses, it says to a piece only."""
        try:
            return await self._calls.held_output(self._proof)
        except (NotFound, InvalidTransition):
            return LogState(0)


class SharedOutput:
    """Write output to the folder that is shared with the server."""

    def __init__(self, logs: AttemptLogs, job_id: str, attempt: int) -> None:
        self._logs = logs
        self._job_id = job_id
        self._attempt = attempt

    async def append(self, offset_bytes: int, piece: bytes, *, is_last: bool) -> LogState:
        """Append a piece; a folder that is away is like a server that is away."""
        try:
            state = await asyncio.to_thread(
                self._logs.append, self._job_id, self._attempt, offset_bytes, piece
            )
            if is_last:
                await asyncio.to_thread(self._logs.sync, self._job_id)
        except (OSError, StorageFull) as error:
            raise Unavailable(f"The shared folder cannot be written: {error}") from None
        return state

    async def held(self) -> LogState:
        """Look at the file."""
        try:
            return await asyncio.to_thread(self._logs.held, self._job_id, self._attempt)
        except OSError as error:
            raise Unavailable(f"The shared folder cannot be read: {error}") from None


class OutputDelivery:
    """Deliver the output of one attempt while it grows, until it is complete."""

    def __init__(self, output: OutputSpool, sink: OutputSink, *, is_new: bool = False) -> None:
        self._output = output
        self._sink = sink
        self._is_new = is_new
        self._backoff = Backoff()
        self._changed = asyncio.Event()
        self._is_signalled = False
        loop = asyncio.get_running_loop()

        def notify() -> None:  # from the writing thread; one signal stands for many changes
            if not self._is_signalled:
                self._is_signalled = True
                loop.call_soon_threadsafe(self._changed.set)

        output.on_change(notify)

    async def run(self) -> bool:
        """Deliver all; False if the server refuses it."""
        offset: int | None = 0 if self._is_new else None
        while True:
            try:
                if offset is None:
                    offset = min((await self._sink.held()).held_bytes, self._output.size_bytes)
                piece, is_last = await self._next(offset)
                state = await self._sink.append(offset, piece, is_last=is_last)
                self._backoff.reset()
            except OutputGap as gap:
                offset = min(gap.held_bytes, self._output.size_bytes)
            except Unavailable as error:
                log.info("output is not delivered yet", reason=error.detail)
                await self._backoff.wait()
                offset = None
            except AdeError as error:
                log.warning("the server refuses the output", reason=error.detail)
                return False
            else:
                offset = min(state.held_bytes, self._output.size_bytes)
                if state.is_cut:
                    await self._until_complete()
                    return True
                if is_last:
                    return True

    async def _next(self, offset: int) -> tuple[bytes, bool]:
        """Return the next piece, and whether it is the last one; wait for it."""
        now = asyncio.get_running_loop().time
        until: float | None = None
        while True:
            is_complete = self._output.is_complete  # first: nothing is appended after it
            left_bytes = self._output.size_bytes - offset
            if is_complete or left_bytes >= PIECE_BYTES or (until is not None and now() >= until):
                break
            if left_bytes and until is None:
                until = now() + GATHER_SECONDS
            await self._change(IDLE_SECONDS if until is None else until - now())
        piece = await asyncio.to_thread(self._output.read, offset, PIECE_BYTES)
        return piece, is_complete and offset + len(piece) >= self._output.size_bytes

    async def _until_complete(self) -> None:
        while not self._output.is_complete:
            await self._change(IDLE_SECONDS)

    async def _change(self, seconds: float) -> None:
        """Wait for a change of the output, up to a time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()
        self._is_signalled = False


async def deliver_end(calls: ContractCalls, folder: AttemptFolder) -> None:
    """Report how an attempt ended until the server has it or refuses it; then forget it."""
    backoff = Backoff()
    end = await asyncio.to_thread(folder.read, END)
    while end is not None:
        try:
            await calls.report(end)
        except Unavailable as error:
            log.info("an end is not delivered yet", job=end.get("job_id"), reason=error.detail)
            await backoff.wait()
            continue
        except InvalidTransition as error:
            if end["status"] == AgentStatus.QUEUED:  # it was announced: it cannot be handed back
                end = end | HANDED_BACK_LATE
                continue
            log.warning("the end of an attempt comes too late", reason=error.detail)
        except AdeError as error:
            log.warning(
                "the server refuses the end of an attempt",
                job=end.get("job_id"),
                status=end.get("status"),
                reason=error.detail,
            )
        break
    await asyncio.to_thread(folder.delete)
