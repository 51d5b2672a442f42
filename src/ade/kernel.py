"""The kernel: every stage as a call, over one store.

The APIs and the workers call it. Each call is one item of a verb; the items of calls that wait at
the same time commit in one transaction (`ade.store.group_commit`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from ade.domain.errors import AdeError
from ade.domain.lease import LeaseRule
from ade.domain.queue_pause import PauseScope
from ade.events.event_file import EventFileExporter
from ade.events.notifier import Notifier, Subscription
from ade.stages import (
    claim,
    expire,
    finish,
    finish_and_claim,
    force,
    output,
    queue_pauses,
    renew,
    report,
    resume,
    retain,
    stop,
    workers,
)
from ade.stages.agents import dispatch
from ade.stages.agents import hosts as agent_hosts
from ade.stages.agents import report as agent_report
from ade.stages.agents.dispatch import Dispatch
from ade.stages.agents.hosts import HostNote
from ade.stages.agents.report import AgentReport
from ade.stages.claim import ClaimRequest
from ade.stages.expire import Swept
from ade.stages.finish import Finish, Finished
from ade.stages.finish_and_claim import FinishAndClaim, FinishedAndClaimed
from ade.stages.force import Force
from ade.stages.kernel_settings import KernelSettings
from ade.stages.output import OutputAppend
from ade.stages.queue_pauses import PauseQueue
from ade.stages.report import AttemptReport
from ade.stages.resume import Clear, Resolve, Resume
from ade.stages.retain import Retain
from ade.stages.stop import Stop
from ade.stages.submit import idempotency, submit
from ade.stages.submit.model import Accepted, Submission
from ade.stages.workers import RunningWorker
from ade.store.port import Reading, Result, Store
from ade.store.rows import (
    Claim,
    IdempotencyRow,
    JobRef,
    JobRow,
    LeaseRef,
    QueuePauseRow,
    Renewed,
)


def _raise_error(answer: Any) -> Any:
    if isinstance(answer, AdeError):
        raise answer
    return answer


class Verbs:
    """Bind each stage to its settings once: group commit gathers the items of equal verbs."""

    def __init__(self, settings: KernelSettings, store: Store) -> None:
        self.submit = partial(submit.submit, settings, store.clock)
        self.record_response = partial(idempotency.record_response, settings)
        self.claim = partial(claim.claim, settings)
        self.renew = partial(renew.renew, settings)
        self.finish = partial(finish.finish, settings)
        self.finish_and_claim = partial(finish_and_claim.finish_and_claim, settings)
        self.report = partial(report.report, settings)
        self.append_output = partial(output.append_output, settings)
        self.stop = partial(stop.stop, settings)
        self.resume = partial(resume.resume, settings)
        self.resolve = partial(resume.resolve, settings)
        self.clear = partial(resume.clear, settings)
        self.expire = partial(expire.expire, settings, store.clock)
        self.retain = partial(retain.retain, settings)
        self.note_worker = partial(workers.note_worker, settings)
        self.forget_worker = partial(workers.forget_worker, settings)
        self.force = partial(force.force, settings)
        self.delete = partial(retain.delete, settings)
        self.pause_queue = partial(queue_pauses.pause_queue, settings)
        self.resume_queue = partial(queue_pauses.resume_queue, settings)
        self.dispatch = partial(dispatch.dispatch, settings)
        self.report_status = partial(agent_report.report_status, settings)
        self.note_hosts = partial(agent_hosts.note_hosts, settings)


class Kernel:
    """Take jobs through their life, for callers in an event loop."""

    def __init__(
        self,
        store: Store,
        settings: KernelSettings | None = None,
        notifier: Notifier | None = None,
        exporter: EventFileExporter | None = None,
    ) -> None:
        self.store = store
        self._exporter = exporter
        self.settings = settings or KernelSettings()
        self.notifier = notifier or Notifier()
        self.verbs = Verbs(self.settings, store)
        store.on_commit = self.notifier.publish
        self.now = BlockingKernel(self)

    @property
    def lease(self) -> LeaseRule:
        """Return how long a lease lasts, and how often it is to be renewed."""
        return self.settings.lease

    def monotonic(self) -> float:
        """Return the time of the clock that trust in a lease is counted on."""
        return self.store.clock.monotonic()

    def subscribe(self, *topics: str) -> AbstractContextManager[Subscription]:
        """Subscribe to hints about these topics, until the block ends."""
        return self.notifier.subscribe(*topics)

    def event_exporter(self, jobs_dir: Path) -> EventFileExporter:
        """Return what exports the events of jobs to files in a folder."""
        return EventFileExporter(self.store, jobs_dir)

    async def _one(self, verb: Any, item: Any) -> Any:
        return _raise_error((await self.store.awrite(verb, [item]))[0])

    async def _exported(self, job: JobRow) -> JobRow:
        """Bring a job's event file up to date after a person changed the job."""
        await self._export_all([JobRef(job.workspace_id, job.id)])
        return job

    async def _export_all(self, refs: Sequence[JobRef]) -> None:
        if self._exporter is not None:
            # The change is committed. A file that cannot be written now is completed next time.
            await asyncio.gather(*map(self._exporter.export, refs), return_exceptions=True)

    async def submit(self, submission: Submission) -> Accepted:
        """Accept a job, or raise why not."""
        return await self._one(self.verbs.submit, submission)

    async def submit_many(self, submissions: list[Submission]) -> Sequence[Accepted | AdeError]:
        """Accept or refuse each of many jobs, in one transaction."""
        return await self.store.awrite(self.verbs.submit, submissions) if submissions else []

    async def record_response(self, row: IdempotencyRow) -> None:
        """Record the response to a request with an Idempotency-Key that waited for its job."""
        await self._one(self.verbs.record_response, row)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim jobs to run."""
        return await self._one(self.verbs.claim, request)

    async def renew(self, leases: list[LeaseRef]) -> Sequence[Renewed | AdeError]:
        """Renew leases; for a lost one, LeaseLost stands in its place."""
        return await self.store.awrite(self.verbs.renew, leases) if leases else []

    async def finish(self, end: Finish) -> Finished:
        """Record how an attempt ended, or raise LeaseLost."""
        return await self._one(self.verbs.finish, end)

    async def finish_and_claim(
        self, ends: list[Finish], request: ClaimRequest
    ) -> FinishedAndClaimed:
        """Record the attempts that ended and claim the next jobs, in one transaction."""
        return await self._one(self.verbs.finish_and_claim, FinishAndClaim(ends, request))

    async def report(self, report: AttemptReport) -> bool:
        """Append to a job's log while holding its lease; False if the log is full."""
        return await self._one(self.verbs.report, report)

    async def append_output(self, append: OutputAppend) -> None:
        """Append what a job writes while holding its lease, or raise LeaseLost."""
        await self._one(self.verbs.append_output, append)

    async def stop(self, request: Stop) -> JobRow:
        """Cancel or pause a job."""
        return await self._exported(await self._one(self.verbs.stop, request))

    async def resume(self, request: Resume) -> JobRow:
        """Queue a stopped job again."""
        return await self._exported(await self._one(self.verbs.resume, request))

    async def resolve(self, request: Resolve) -> JobRow:
        """Record a result that a person found."""
        return await self._exported(await self._one(self.verbs.resolve, request))

    async def clear(self, request: Clear) -> JobRow:
        """Free a lane without a result."""
        return await self._exported(await self._one(self.verbs.clear, request))

    async def expire(self, *, deep: bool = False) -> Swept:
        """Sweep once: lost leases, overdue jobs, timers; if `deep`, also lanes that stand still."""
        swept: Swept = await self._one(self.verbs.expire, deep)
        await self._export_all(swept.moved)
        return swept

    async def retain(self, workspace_id: str) -> list[JobRef]:
        """Delete old jobs of a workspace, and return which."""
        return await self._one(self.verbs.retain, Retain(workspace_id))

    async def note_worker(self, worker: RunningWorker) -> None:
        """Note that a worker is running."""
        await self._one(self.verbs.note_worker, worker)

    async def forget_worker(self, name: str) -> None:
        """Forget a worker that has stopped."""
        await self._one(self.verbs.forget_worker, name)

    async def force(self, request: Force) -> JobRow:
        """Queue, fail or cancel a job by an operator's decision."""
        return await self._exported(await self._one(self.verbs.force, request))

    async def delete(self, ref: JobRef) -> JobRow:
        """Delete a job that has ended, with its logs, and return what it was."""
        return await self._one(self.verbs.delete, ref)

    async def pause_queue(self, request: PauseQueue) -> QueuePauseRow:
        """Keep the jobs of a workspace or a kind from starting, in all processes."""
        return await self._one(self.verbs.pause_queue, request)

    async def resume_queue(self, scope: PauseScope) -> None:
        """Let jobs start again, or raise NotFound if they were not paused."""
        await self._one(self.verbs.resume_queue, scope)

    async def dispatch(self, request: Dispatch) -> Claim | None:
        """Give an agent a job, if there is one that it may take."""
        return await self._one(self.verbs.dispatch, request)

    async def report_status(self, report: AgentReport) -> JobRow:
        """Record what an agent says of a job that it holds, or raise why it is refused."""
        return await self._exported(await self._one(self.verbs.report_status, report))

    async def note_hosts(self, notes: list[HostNote]) -> None:
        """Note which hosts were heard of."""
        await self._one(self.verbs.note_hosts, notes)

    async def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        return await self.store.aread(look)


class BlockingKernel:
    """Make the same calls without an event loop, as the benchmarks and the store's tests do."""

    def __init__(self, kernel: Kernel) -> None:
        self._store = kernel.store
        self._verbs = kernel.verbs

    def __getattr__(self, name: str) -> Callable[..., Any]:
        verb = getattr(self._verbs, name)
        return lambda item=None: _raise_error(self._store.write(verb, [item])[0])

    def many(self, name: str, items: list[Any]) -> Sequence[Any]:
        """Run a verb for many items in one transaction; an error is returned in its place."""
        return self._store.write(getattr(self._verbs, name), items) if items else []

    def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        return self._store.read(look)
