"""What an agent may do with the jobs that it holds, and with no others.

The model. An agent is known by its name, and the jobs that it claims are leased to that name. A
fence is given to one claim only, so an agent that holds a job under a fence holds it as long as
that fence is current: it is enough to look at the owner before a verb that carries the fence.

    what an agent sends                        what happens
    -----------------------------------------  -------------------------------------------------
    a job that it does not hold, or an old     LeaseLost; nothing changes
    fence, or a job that does not exist
    an end again, because the answer was lost  LeaseLost; the first one was recorded
    files of a result                          they count if this attempt sent them
                                               (`ade.app.agent_uploads`)
    a claim whose answer nobody waits for      no job is taken; one that was is handed back
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ade.app.agent_messages import (
    EndMessage,
    OutcomeMessage,
    OutputMessage,
    ReportMessage,
    WorkerMessage,
)
from ade.app.agent_uploads import AgentUploads
from ade.domain.build import KIND as BUILD
from ade.domain.errors import AdeError, InvalidRequest, LeaseLost
from ade.domain.events import work_topic
from ade.domain.job import LOCAL_POOL, Status
from ade.domain.outcome import Outcome
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest, Rotation
from ade.stages.finish import Finish, Finished
from ade.stages.renew import lease_lost
from ade.stages.report import AttemptReport
from ade.stages.workers import RunningWorker
from ade.store.port import Reading
from ade.store.rows import Claim, JobRef, JobRow, LeaseRef, Renewed

# Hints may be lost: a request that waits looks for work this often anyway.
LOOK_SECONDS = 1.0
AGENTS_REMEMBERED_MAX = 4096


class AgentLeases:
    """Claim, renew and finish jobs for agents, each by its name."""

    def __init__(self, kernel: Kernel, jobs_dir: Path, uploads: AgentUploads) -> None:
        self.kernel = kernel
        self._uploads = uploads
        self._exporter = kernel.event_exporter(jobs_dir)
        self._rotations: dict[str, Rotation] = {}

    async def claim(
        self,
        owner: str,
        limit: int,
        kinds: frozenset[str],
        wait_seconds: float,
        gone: "asyncio.Future[None]",
    ) -> list[Claim]:
        """Claim jobs, waiting for some up to a time; once `gone` is done, claim none."""
        request = ClaimRequest(owner, limit, LOCAL_POOL, self._rotation(owner), kinds)
        monotonic = self.kernel.monotonic
        until = monotonic() + wait_seconds
        with self.kernel.subscribe(work_topic(LOCAL_POOL)) as hints:
            while not gone.done():
                claims = await self.kernel.claim(request)
                left_seconds = until - monotonic()
                if claims and gone.done():
                    await self._hand_back(claims)
                    return []
                if claims or left_seconds <= 0:
                    return claims
                waiting = asyncio.ensure_future(hints.wait(min(left_seconds, LOOK_SECONDS)))
                waits: set[asyncio.Future[Any]] = {waiting, gone}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        return []

    async def _hand_back(self, claims: list[Claim]) -> None:
        back = [self.kernel.finish(Finish(claim, None)) for claim in claims]
        await asyncio.gather(*back, return_exceptions=True)  # or their leases end

    def _rotation(self, owner: str) -> Rotation:
        rotation = self._rotations.pop(owner, None) or Rotation()
        while len(self._rotations) >= AGENTS_REMEMBERED_MAX:
            del self._rotations[next(iter(self._rotations))]
        self._rotations[owner] = rotation
        return rotation

    async def renew(
        self, owner: str, leases: Sequence[LeaseRef]
    ) -> list[Renewed | LeaseLost | AdeError]:
        """Renew leases; for one that is lost or not the agent's, LeaseLost stands in its place."""
        held = await self._held(owner, leases)
        mine = [lease for lease in leases if lease in held]
        renewed = dict(zip(mine, await self.kernel.renew(mine), strict=True))
        return [renewed.get(lease) or lease_lost(lease) for lease in leases]

    async def finish(self, owner: str, end: EndMessage) -> Finished:
        """Record how an attempt ended, from what the server knows of the job itself."""
        job = await self.held(owner, end.lease)
        if end.output is not None and end.output.lease != end.lease:
            raise InvalidRequest("The output belongs to another attempt.")
        outcome = None if end.outcome is None else await self._checked(job, end.outcome)
        output = None if end.output is None else end.output.as_append()
        finished = await self.kernel.finish(Finish(_claim_of(job), outcome, output))
        await self._export(end.lease)
        return finished

    async def _checked(self, job: JobRow, message: OutcomeMessage) -> Outcome:
        """Return the outcome that an agent reports, with the files that are known to be there."""
        outcome = message.as_outcome()
        result = outcome.result
        if result is not None and not isinstance(result.get("outputs", {}), dict):
            raise InvalidRequest("outputs: a result holds an object there.")
        if job.kind == BUILD and outcome.status is Status.SUCCEEDED:
            await self._uploads.check_build(outcome)
        artifacts = await self._uploads.accept(job, message.artifacts)
        if artifacts or (result is not None and "artifacts" in result):
            result = {**(result or {}), "artifacts": [one.as_dict() for one in artifacts]}
        return replace(outcome, result=result, artifacts=artifacts)

    async def report(self, owner: str, message: ReportMessage) -> bool:
        """Record the progress of an attempt; False if the job's log is full."""
        await self.held(owner, message.lease)
        kept = await self.kernel.report(AttemptReport(message.lease, progress=message.progress))
        await self._export(message.lease)
        return kept

    async def note_worker(self, owner: str, message: WorkerMessage) -> None:
        """Note which kinds an agent runs, for the reasons why jobs wait; or that it has stopped."""
        if message.has_stopped:
            await self.kernel.forget_worker(owner)
            return
        await self.kernel.note_worker(
            RunningWorker(
                owner,
                message.host,
                frozenset(message.kinds),
                message.slots,
                message.drains_in_seconds,
                message.block,
            )
        )

    async def append_output(self, owner: str, message: OutputMessage) -> None:
        """Append what a job writes."""
        await self.held(owner, message.lease)
        await self.kernel.append_output(message.as_append())

    async def _export(self, lease: LeaseRef) -> None:
        with contextlib.suppress(Exception):  # it is a copy; what is missing comes with the next
            await self._exporter.export(JobRef(lease.workspace_id, lease.id))

    async def held(self, owner: str, lease: LeaseRef) -> JobRow:
        """Return the job of an attempt that is the agent's own and current, or raise LeaseLost."""
        held = await self._held(owner, [lease])
        if lease not in held:
            raise lease_lost(lease)
        return held[lease]

    async def _held(self, owner: str, leases: Sequence[LeaseRef]) -> dict[LeaseRef, JobRow]:
        """Find which of these attempts are the agent's own and still current."""

        def look(reading: Reading) -> dict[LeaseRef, JobRow]:
            jobs = {lease: reading.read_job(JobRef(*lease[:2])) for lease in set(leases)}
            return {
                lease: job
                for lease, job in jobs.items()
                if job is not None
                and job.lease_owner == owner
                and job.fence == lease.fence
                and job.status == Status.RUNNING
            }

        return await self.kernel.read(look) if leases else {}


def _claim_of(job: JobRow) -> Claim:
    """Rebuild the claim of a job that runs; its payload is not needed to finish it."""
    return Claim(
        job.workspace_id,
        job.id,
        job.kind,
        job.fence,
        job.rank,
        job.target_id,
        job.retries_left,
        job.started_at,
        job.limits,
        "",
    )
