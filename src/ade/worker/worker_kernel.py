"""What a worker requires of the kernel: the verbs of a lease, and no database.

`ade.kernel.Kernel` is the implementation for workers that reach the database themselves. Another
one may be a client of a server, on a host that has no access to the database. Every call but
`claim` carries a fence, so an implementation may repeat a call whose answer was lost: what was
recorded before is either accepted again or rejected with LeaseLost.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ade.domain.errors import AdeError
from ade.domain.lease import LeaseRule
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish, Finished
from ade.stages.finish_and_claim import FinishedAndClaimed
from ade.stages.output import OutputAppend
from ade.stages.report import AttemptReport
from ade.stages.workers import RunningWorker
from ade.store.rows import Claim, JobRef, LeaseRef, Renewed


class Hints(Protocol):
    """Wait for a hint that something may have changed; hints may be lost."""

    async def wait(self, timeout_seconds: float) -> bool:
        """Wait for a hint up to the timeout; tell whether there was one."""
        ...


class EventExporter(Protocol):
    """Bring the event file of a job up to date, where there is one."""

    async def export(self, ref: JobRef) -> None:
        """Append the events that the file lacks."""
        ...


class WorkerKernel(Protocol):
    """Claim jobs, keep their leases, and record what becomes of them."""

    @property
    def lease(self) -> LeaseRule:
        """Return how long a lease lasts, and how often it is to be renewed."""
        ...

    def monotonic(self) -> float:
        """Return the time of the clock that trust in a lease is counted on."""
        ...

    def subscribe(self, *topics: str) -> AbstractContextManager[Hints]:
        """Subscribe to hints about these topics, until the block ends."""
        ...

    def event_exporter(self, jobs_dir: Path) -> EventExporter:
        """Return what exports the events of jobs to files in a folder."""
        ...

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim jobs to run."""
        ...

    async def renew(self, leases: list[LeaseRef]) -> Sequence[Renewed | AdeError]:
        """Renew leases; for a lost one, LeaseLost stands in its place."""
        ...

    async def finish(self, end: Finish) -> Finished:
        """Record how an attempt ended, or raise LeaseLost."""
        ...

    async def finish_and_claim(
        self, ends: list[Finish], request: ClaimRequest
    ) -> FinishedAndClaimed:
        """Record the attempts that ended and claim the next jobs."""
        ...

    async def report(self, report: AttemptReport) -> bool:
        """Append to a job's log while holding its lease; False if the log is full."""
        ...

    async def append_output(self, append: OutputAppend) -> None:
        """Append what a job writes while holding its lease, or raise LeaseLost."""
        ...

    async def note_worker(self, worker: RunningWorker) -> None:
        """Note that a worker is running."""
        ...

    async def forget_worker(self, name: str) -> None:
        """Forget a worker that has stopped."""
        ...
