"""The kernel: every stage as a call, over one store.

Doors and workers speak to this. Each call is one item of a verb; what waits together commits
together (`ade.store.group_commit`). The same calls exist for threads (`kernel.now.submit(...)`).
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ade.domain.errors import AdeError
from ade.events.event_file import EventFileExporter
from ade.events.notifier import Notifier
from ade.stages import (
    builds,
    claim,
    expire,
    finish,
    finish_and_claim,
    idempotency,
    renew,
    report,
    resume,
    retain,
    stop,
    submit,
)
from ade.stages.builds import BuildEnded
from ade.stages.claim import ClaimRequest
from ade.stages.expire import Swept
from ade.stages.finish import Finish, Finished
from ade.stages.finish_and_claim import FinishAndClaim, FinishedAndClaimed
from ade.stages.report import Report
from ade.stages.resume import Clear, Resolve, Resume
from ade.stages.retain import Retain
from ade.stages.rules import Rules
from ade.stages.stop import Stop
from ade.stages.submit import Accepted, Submission
from ade.store.port import Reading, Result, Store
from ade.store.rows import Claim, Held, IdempotencyRow, JobRef, JobRow, Renewed


def _value(outcome: Any) -> Any:
    if isinstance(outcome, AdeError):
        raise outcome
    return outcome


class Verbs:
    """Hold each stage bound to its rules, once, so that equal verbs gather in one group."""

    def __init__(self, rules: Rules, store: Store) -> None:
        self.submit = partial(submit.submit, rules, store.clock)
        self.answer = partial(idempotency.answer, rules)
        self.claim = partial(claim.claim, rules)
        self.renew = partial(renew.renew, rules)
        self.finish = partial(finish.finish, rules)
        self.finish_and_claim = partial(finish_and_claim.finish_and_claim, rules)
        self.report = partial(report.report, rules)
        self.stop = partial(stop.stop, rules)
        self.resume = partial(resume.resume, rules)
        self.resolve = partial(resume.resolve, rules)
        self.clear = partial(resume.clear, rules)
        self.expire = partial(expire.expire, rules)
        self.retain = partial(retain.retain, rules)
        self.settle_build = partial(builds.settle, rules)


class Kernel:
    """Take jobs through their life, for callers in an event loop."""

    def __init__(
        self,
        store: Store,
        rules: Rules | None = None,
        notifier: Notifier | None = None,
        exporter: EventFileExporter | None = None,
    ) -> None:
        self.store = store
        self._exporter = exporter
        self.rules = rules or Rules()
        self.notifier = notifier or Notifier()
        self.verbs = Verbs(self.rules, store)
        store.on_commit = self.notifier.publish
        self.now = KernelNow(self)

    async def _one(self, verb: Any, item: Any) -> Any:
        return _value((await self.store.awrite(verb, [item]))[0])

    async def _exported(self, job: JobRow) -> JobRow:
        """Bring a job's event file up to date after a person changed the job."""
        await self._export_all([JobRef(job.workspace_id, job.id)])
        return job

    async def _export_all(self, refs: Sequence[JobRef]) -> None:
        if self._exporter is not None:
            # The change is committed. A file that cannot be written now is completed next time.
            await asyncio.gather(*map(self._exporter.export, refs), return_exceptions=True)

    async def submit(self, ask: Submission) -> Accepted:
        """Accept a job, or raise why not."""
        return await self._one(self.verbs.submit, ask)

    async def submit_many(self, asks: list[Submission]) -> Sequence[Accepted | AdeError]:
        """Accept or refuse each of many jobs, in one transaction."""
        return await self.store.awrite(self.verbs.submit, asks) if asks else []

    async def answer(self, given: IdempotencyRow) -> None:
        """Record the answer to a request that waited for its job."""
        await self._one(self.verbs.answer, given)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Take jobs to run."""
        return await self._one(self.verbs.claim, request)

    async def renew(self, held: list[Held]) -> Sequence[Renewed | AdeError]:
        """Keep leases; a lost one comes back as an error in its place."""
        return await self.store.awrite(self.verbs.renew, held) if held else []

    async def finish(self, end: Finish) -> Finished:
        """Record how an attempt ended, or raise LeaseLost."""
        return await self._one(self.verbs.finish, end)

    async def finish_and_claim(
        self, ends: list[Finish], request: ClaimRequest
    ) -> FinishedAndClaimed:
        """Record the attempts that ended and claim the next jobs, in one transaction."""
        return await self._one(self.verbs.finish_and_claim, FinishAndClaim(ends, request))

    async def report(self, said: Report) -> bool:
        """Append to a job's log while holding its lease."""
        return await self._one(self.verbs.report, said)

    async def stop(self, ask: Stop) -> JobRow:
        """Cancel or pause a job."""
        return await self._exported(await self._one(self.verbs.stop, ask))

    async def resume(self, ask: Resume) -> JobRow:
        """Queue a stopped job again."""
        return await self._exported(await self._one(self.verbs.resume, ask))

    async def resolve(self, ask: Resolve) -> JobRow:
        """Record a result that a person found."""
        return await self._exported(await self._one(self.verbs.resolve, ask))

    async def clear(self, ask: Clear) -> JobRow:
        """Free a lane without a result."""
        return await self._exported(await self._one(self.verbs.clear, ask))

    async def settle_build(self, ended: BuildEnded) -> int:
        """Let the runs of a build go on, or fail them; count them."""
        return await self._one(self.verbs.settle_build, ended)

    async def expire(self, *, deep: bool = False) -> Swept:
        """Repair what time has passed over."""
        swept: Swept = await self._one(self.verbs.expire, deep)
        await self._export_all(swept.moved)
        return swept

    async def retain(self, workspace_id: str) -> list[JobRef]:
        """Forget old jobs of a workspace, and say which."""
        return await self._one(self.verbs.retain, Retain(workspace_id))

    async def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        return await self.store.aread(look)


class KernelNow:
    """Make the same calls from a thread: each returns when its transaction has committed."""

    def __init__(self, kernel: Kernel) -> None:
        self._store = kernel.store
        self._verbs = kernel.verbs

    def __getattr__(self, name: str) -> Callable[..., Any]:
        verb = getattr(self._verbs, name)
        return lambda item=None: _value(self._store.write(verb, [item])[0])

    def many(self, name: str, items: list[Any]) -> Sequence[Any]:
        """Run a verb for many items in one transaction; errors stand among the outcomes."""
        return self._store.write(getattr(self._verbs, name), items) if items else []

    def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        return self._store.read(look)
