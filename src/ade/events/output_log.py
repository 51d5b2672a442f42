"""Read and follow what a job writes.

A reader knows the place of the last piece that it has seen. Of a log over its limit the middle is
missing: the first piece after a gap says how many bytes were dropped before it. A reader who comes
back at a place that was dropped meanwhile is told so by the same number.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

from ade.domain.events import output_topic
from ade.domain.job import TERMINAL, Status
from ade.domain.output import cut_note, pieces_of
from ade.events.stream import HEARTBEAT_SECONDS, READ_SECONDS_MAX, JobSource
from ade.store.port import Reading
from ade.store.rows import JobRef, JobRow, OutputBatch

BATCHES_PER_READ = 32


class LogPiece(NamedTuple):
    """Hold a piece at its place in the log of a job."""

    seq: int
    at: int
    attempt: int
    stream: str
    starts: int
    text: str
    dropped_bytes: int  # how many are missing before it


class OutputReader:
    """Find what is new in the batches of one log, which its caller reads after `place`."""

    def __init__(self, after: int = 0) -> None:
        self._after = after  # pieces up to here are not returned
        self.place = max(0, after - 1)  # one before, for where the last one ended
        self._attempt = self._ends = 0
        self._is_first = after > 0

    def take(self, batches: list[OutputBatch]) -> list[LogPiece]:
        """Return what is new in the next batches; it may be nothing although there is more."""
        if self._is_first and self._begins_after(batches[0]):
            # What the reader has seen last was dropped: read again, for what is left before it.
            self._is_first, self.place = False, 0
            return []
        self._is_first = False
        self.place = batches[-1].seq
        return [piece for batch in batches for piece in self._new_pieces(batch)]

    def _begins_after(self, batch: OutputBatch) -> bool:
        return batch.seq - len(pieces_of(batch.pieces)) >= self._after

    def _new_pieces(self, batch: OutputBatch) -> Iterable[LogPiece]:
        pieces = pieces_of(batch.pieces)
        if batch.attempt != self._attempt:
            self._attempt, self._ends = batch.attempt, 0
        for seq, piece in enumerate(pieces, batch.seq - len(pieces) + 1):
            dropped_bytes = piece.starts - self._ends
            self._ends = piece.ends
            if seq > self._after:
                place = (seq, batch.at, batch.attempt)
                yield LogPiece(*place, *piece, dropped_bytes)


def read_pieces(reading: Reading, ref: JobRef, after: int = 0) -> list[LogPiece]:
    """Read all that a job wrote after a place; a log has a limit."""
    reader, found = OutputReader(after), list[LogPiece]()
    while batches := reading.read_output(ref, reader.place, BATCHES_PER_READ):
        found += reader.take(batches)
    return found


def stream_text(pieces: Iterable[LogPiece], stream: str) -> str:
    """Return what a stream wrote, with a note where something is missing."""
    parts, dropped_bytes = list[str](), 0
    for piece in pieces:
        dropped_bytes += piece.dropped_bytes
        if piece.stream == stream:
            parts += [cut_note(dropped_bytes)] if dropped_bytes else []
            parts.append(piece.text)
            dropped_bytes = 0
    if dropped_bytes:
        parts.append(cut_note(dropped_bytes))
    return "".join(parts)


async def follow_output(
    source: JobSource,
    ref: JobRef,
    after: int,
    *,
    waiting: JobRef | None = None,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> AsyncIterator[list[LogPiece]]:
    """Yield pieces in order until the job has ended and all were yielded; `[]` is a heartbeat.

    It also ends with the job that is `waiting` for this one, if there is one.
    """
    reader = OutputReader(after)
    refs = [ref] if waiting is None else [ref, waiting]

    def look(reading: Reading) -> tuple[bool, list[OutputBatch]]:
        has_ended = any(_has_ended(reading.read_job(one)) for one in refs)
        return has_ended, reading.read_output(ref, reader.place, BATCHES_PER_READ)

    now = asyncio.get_running_loop().time
    topics = [one.id for one in refs]
    with source.notifier.subscribe(output_topic(ref.id), *topics) as subscription:
        quiet_since = now()
        while True:
            has_ended, batches = await source.read(look)
            if batches:
                quiet_since = now()
                if pieces := reader.take(batches):
                    yield pieces
                continue
            if has_ended:
                return
            await subscription.wait(min(READ_SECONDS_MAX, heartbeat_seconds))
            if now() - quiet_since >= heartbeat_seconds:
                quiet_since = now()
                yield []


def _has_ended(job: JobRow | None) -> bool:
    return job is None or Status(job.status) in TERMINAL
