"""Follow all that happens to a job in one order: its events, and what it and its build write.

A place in a timeline is a place in the event log and one in the log of output, so that a reader
resumes in both. Output has the time at which it was stored. Items that are read together are put in
the order of their times; of equal times, output comes first, because the transaction that ends an
attempt stores what the attempt wrote last.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ade.domain.events import output_topic
from ade.domain.job import TERMINAL, Status
from ade.events.output_log import BATCHES_PER_READ, LogPiece, OutputReader
from ade.events.stream import EVENTS_PER_READ, HEARTBEAT_SECONDS, READ_SECONDS_MAX, JobSource
from ade.store.port import Reading
from ade.store.rows import JobRef, NewEvent, OutputBatch

OF_BUILD = "build:"


class TimelineItem(NamedTuple):
    """Hold an event or a piece, the place after it, and the job that it belongs to."""

    place: str
    job_id: str
    what: NewEvent | LogPiece


class _Seen(NamedTuple):
    has_ended: bool
    events: list[NewEvent]
    of_build: list[OutputBatch]
    own: list[OutputBatch]

    @property
    def is_empty(self) -> bool:
        return not (self.events or self.of_build or self.own)


@dataclass(frozen=True, slots=True)
class TimelineStart:
    """Say which job is read, which build it waited for, and after which place."""

    ref: JobRef
    build: JobRef | None = None
    event_seq: int = 0
    log_place: str = "0"


class Timeline:
    """Read a timeline from a place on, some items at a time."""

    def __init__(self, start: TimelineStart) -> None:
        self._ref = start.ref
        self._event_seq = start.event_seq
        self._log_place = start.log_place
        number = int(start.log_place.removeprefix(OF_BUILD))
        in_build = start.log_place.startswith(OF_BUILD)
        self._own = OutputReader(0 if in_build else number)
        # A reader who is past the build does not see it again.
        self._build = start.build if in_build or not number else None
        self._of_build = OutputReader(number if in_build else 0)

    @property
    def topics(self) -> list[str]:
        """Name what may bring news."""
        refs = [self._ref] if self._build is None else [self._ref, self._build]
        return [self._ref.id, *[output_topic(ref.id) for ref in refs]]

    def look(self, reading: Reading) -> _Seen:
        """Read what may be new; the same again until it was taken."""
        job = reading.read_job(self._ref)
        has_ended = job is None or Status(job.status) in TERMINAL
        events = reading.read_events(self._ref, self._event_seq, EVENTS_PER_READ)
        of_build: list[OutputBatch] = []
        if self._build is not None:
            of_build = reading.read_output(self._build, self._of_build.place, BATCHES_PER_READ)
        own: list[OutputBatch] = []
        if len(of_build) < BATCHES_PER_READ:
            own = reading.read_output(self._ref, self._own.place, BATCHES_PER_READ)
        return _Seen(has_ended, events, of_build, own)

    def take(self, seen: _Seen) -> list[TimelineItem]:
        """Return what is new, in order; it may be nothing although there is more."""
        events, batches = seen.events, seen.own or seen.of_build
        if len(batches) == BATCHES_PER_READ:  # later events wait for the output before them
            events = [event for event in events if event.at <= batches[-1].at]
        pieces: list[tuple[str, JobRef, LogPiece]] = []
        if self._build is not None and seen.of_build:
            found = self._of_build.take(seen.of_build)
            pieces += [(f"{OF_BUILD}{piece.seq}", self._build, piece) for piece in found]
        if seen.own:
            pieces += [(str(piece.seq), self._ref, piece) for piece in self._own.take(seen.own)]
        return list(self._merged(events, pieces))

    def _merged(
        self, events: list[NewEvent], pieces: list[tuple[str, JobRef, LogPiece]]
    ) -> Iterator[TimelineItem]:
        waiting = iter(pieces)
        piece = next(waiting, None)
        for event in [*events, None]:
            while piece is not None and (event is None or piece[2].at <= event.at):
                self._log_place = piece[0]
                yield TimelineItem(self._place(), piece[1].id, piece[2])
                piece = next(waiting, None)
            if event is not None:
                self._event_seq = event.seq
                yield TimelineItem(self._place(), event.job_id, event)

    def _place(self) -> str:
        return f"{self._event_seq}.{self._log_place}"


async def follow_timeline(
    source: JobSource, start: TimelineStart, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncIterator[list[TimelineItem]]:
    """Yield items until the job has ended and all were yielded; `[]` is a heartbeat."""
    timeline = Timeline(start)
    now = asyncio.get_running_loop().time
    with source.notifier.subscribe(*timeline.topics) as subscription:
        quiet_since = now()
        while True:
            seen = await source.read(timeline.look)
            if not seen.is_empty:
                quiet_since = now()
                if items := timeline.take(seen):
                    yield items
                continue
            if seen.has_ended:
                return
            await subscription.wait(min(READ_SECONDS_MAX, heartbeat_seconds))
            if now() - quiet_since >= heartbeat_seconds:
                quiet_since = now()
                yield []
