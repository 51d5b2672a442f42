"""Follow one job's event log as it grows.

A notification is only a hint: the log is read at least once a second whatever happens, so a lost
notification costs a second and never an event. The subscription begins before the first read, so
what is written between a read and the wait ends the wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from ade.domain.job import TERMINAL, Status
from ade.events.notifier import Notifier
from ade.store.port import Reading, Result
from ade.store.rows import JobRef, JobRow, NewEvent

EVENTS_PER_READ = 500
READ_SECONDS_MAX = 1.0
HEARTBEAT_SECONDS = 15.0


class JobSource(Protocol):
    """Read jobs, and be notified of their changes; the kernel is one."""

    notifier: Notifier

    async def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        ...


async def follow(
    source: JobSource, ref: JobRef, after: int, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncIterator[list[NewEvent]]:
    """Yield events in order until the job has ended and all were yielded; `[]` is a heartbeat."""

    def look(reading: Reading) -> tuple[JobRow | None, list[NewEvent]]:
        return reading.read_job(ref), reading.read_events(ref, after, EVENTS_PER_READ)

    now = asyncio.get_running_loop().time
    with source.notifier.subscribe(ref.id) as subscription:
        quiet_since = now()
        while True:
            job, events = await source.read(look)
            if events:
                after = events[-1].seq
                quiet_since = now()
                yield events
                continue
            if job is None or Status(job.status) in TERMINAL:
                return
            await subscription.wait(min(READ_SECONDS_MAX, heartbeat_seconds))
            if now() - quiet_since >= heartbeat_seconds:
                quiet_since = now()
                yield []


async def wait_until_ended(
    source: JobSource, job: JobRow, seconds: float, *, gave_up: Callable[[], bool] = lambda: False
) -> JobRow:
    """Return the job when it has ended, or as it is when the time is up or `gave_up()` is true.

    The caller notifies all subscriptions when `gave_up` becomes true, so the wait ends at once.
    """
    now = asyncio.get_running_loop().time
    until = now() + seconds
    ref = JobRef(job.workspace_id, job.id)
    with source.notifier.subscribe(job.id) as subscription:
        while True:
            found = await source.read(lambda reading: reading.read_job(ref))
            job = found or job
            left = until - now()
            if Status(job.status) in TERMINAL or left <= 0 or gave_up():
                return job
            await subscription.wait(min(READ_SECONDS_MAX, left))
