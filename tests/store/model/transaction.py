"""The verbs of the port that change something, on dictionaries.

Every change of a job's state has its precondition beside it, as the statements have it in their
WHERE: `_held` finds a job only for a caller with its current fence.
"""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tests.store.model.agent_jobs import MemoryAgentJobs
from tests.store.model.builds import MemoryBuilds, MemoryVersions
from tests.store.model.invariants import ImpossibleRow
from tests.store.model.reading import MemoryReading, place_in_line
from tests.store.model.tables import ExecutionRef, Tables

from ade.domain.job import WAITING, Status
from ade.store.rows import (
    Append,
    ArtifactRow,
    Claim,
    Claimed,
    ClaimQuery,
    DroppedOutput,
    FinishRow,
    Head,
    HeldOutput,
    IdempotencyRef,
    IdempotencyRow,
    JobRef,
    JobRow,
    Lane,
    LeaseRef,
    Move,
    Moved,
    NewEvent,
    NewExecution,
    OutputBatch,
    Renewal,
    Renewed,
    StopRow,
    WorkerRow,
)


class MemoryTransaction(MemoryReading):
    """Change jobs and their logs in a draft that the store keeps or throws away."""

    def __init__(self, tables: Tables, now_us: int) -> None:
        super().__init__(tables)
        self.now_us = now_us
        self.topics: dict[str, None] = {}
        self.agent_jobs = MemoryAgentJobs(tables, now_us)

    def notify(self, *topics: str) -> None:
        """Notify the waiters for these topics, once the transaction has committed."""
        self.topics.update(dict.fromkeys(topics))

    def _held(self, workspace_id: str, id: str, fence: int, status: str) -> JobRow | None:
        """Find a job that still is in the status and at the fence that someone saw."""
        job = self.read_job(JobRef(workspace_id, id))
        return job if job and job.fence == fence and job.status == status else None

    def _change(self, job: JobRow, **values: Any) -> JobRow:
        changed = job._replace(**values)
        self._tables.put_job(changed)
        return changed

    # --- submit

    def register_executions(self, new: Sequence[NewExecution]) -> list[JobRow]:
        """Register jobs for pieces of work, and return those registered already."""
        standing = []
        for ref, job_id in [(ExecutionRef(*one[:2]), one.job_id) for one in new]:
            known = self._tables.executions.get(ref)
            if known is None:
                self._tables.add_execution(ref, job_id)
            else:
                standing.append(self._tables.jobs[JobRef(ref.workspace_id, known)])
        return standing

    def insert_jobs(
        self, born: Sequence[JobRow], payloads: Sequence[str], first_events: Mapping[str, str]
    ) -> None:
        """Insert jobs with their first events, whose data depend on the status."""
        for row, payload in zip(born, payloads, strict=True):
            ref = JobRef(row.workspace_id, row.id)
            if ref in self._tables.jobs:
                raise ImpossibleRow("pk_jobs")
            self._tables.put_job(row)
            self._tables.payloads[ref] = payload
            data = first_events[row.status]
            self._tables.add_event(NewEvent(*ref, 1, row.submitted_at, f"job.{row.status}", data))

    def forget_executions(self, registered: Sequence[NewExecution]) -> None:
        """Delete the registrations of jobs for their work."""
        for one in registered:
            ref = ExecutionRef(one.workspace_id, one.execution_key)
            if self._tables.executions.get(ref) == one.job_id:
                del self._tables.executions[ref]

    def find_idempotency(self, ref: IdempotencyRef) -> IdempotencyRow | None:
        """Find what was answered to a request."""
        return self._tables.idempotency.get(ref)

    def insert_idempotency(self, row: IdempotencyRow) -> None:
        """Remember the answer to a request."""
        ref = IdempotencyRef(*row[:4])
        if ref in self._tables.idempotency:
            raise ImpossibleRow("pk_idempotency_keys")
        self._tables.idempotency[ref] = row

    def answer_idempotency(self, row: IdempotencyRow) -> None:
        """Record the answer that was still being made."""
        ref = IdempotencyRef(*row[:4])
        earlier = self._tables.idempotency.get(ref)
        if earlier is not None and earlier.response_status is None:
            self._tables.idempotency[ref] = earlier._replace(
                response_status=row.response_status, response_body=row.response_body
            )

    def delete_idempotency(self, created_before: int) -> int:
        """Forget old answers."""
        answers = self._tables.idempotency
        old = [ref for ref, row in answers.items() if row.created_at < created_before]
        for ref in old:
            del answers[ref]
        return len(old)

    def pass_gate(self, name: str) -> None:
        """Do nothing: no two transactions run at the same time."""

    def count_waiting(self, pool: str, limit: int) -> int:
        """Count waiting jobs of a pool."""
        return sum(map(_is_counted, self._jobs(pool=pool)))

    def count_waiting_in(self, workspace_id: str, pool: str, limit: int) -> int:
        """Count waiting jobs of a workspace in a pool."""
        return sum(map(_is_counted, self._jobs(workspace_id=workspace_id, pool=pool)))

    # --- lanes

    def lock_lanes(self, lanes: Sequence[Lane]) -> None:
        """Do nothing: no two transactions run at the same time."""

    def held_lanes(self, lanes: Sequence[Lane]) -> set[Lane]:
        """Find which of these lanes have a holder."""
        return {lane for lane in lanes if self.lane_holders(lane)}

    def promote_lanes(self, lanes: Sequence[Lane]) -> list[Head]:
        """Make the first queued job of each free lane eligible."""
        heads = []
        for lane in lanes:
            waiting = self._lane(lane, status=Status.QUEUED, not_before=None)
            if waiting and not self.lane_holders(lane):
                head = self._change(waiting[0], eligible=1, holds_lane=1)
                heads.append(Head(head.workspace_id, head.id, head.pool))
        return heads

    def stalled_lanes(self, limit: int) -> list[Lane]:
        """Find lanes with queued jobs and no holder."""
        lanes = {
            Lane(job.workspace_id, job.target_id): None
            for job in self._jobs(status=Status.QUEUED, not_before=None)
            if job.target_id is not None
        }
        return [lane for lane in lanes if not self.lane_holders(lane)][:limit]

    def clear_lane(self, lease: LeaseRef, source: str) -> list[Moved]:
        """Take the lane from a job that ended without success."""
        job = self._held(*lease, source)
        if job is None or not job.holds_lane:
            return []
        return _moved([self._change(job, holds_lane=0, event_seq=job.event_seq + 1)])

    # --- claim, renew, move

    def next_workspaces(self, pool: str, after: str, limit: int) -> list[str]:
        """List workspaces with eligible jobs, in order, after a given one."""
        found = {job.workspace_id for job in self._jobs(pool=pool, eligible=1)}
        return sorted(workspace_id for workspace_id in found if workspace_id > after)[:limit]

    def others_wait(self, pool: str, workspace_id: str) -> bool:
        """Tell whether any other workspace has eligible jobs."""
        return any(job.workspace_id != workspace_id for job in self._jobs(pool=pool, eligible=1))

    def _in_line(self, query: ClaimQuery) -> list[JobRow]:
        waiting = self._jobs(workspace_id=query.workspace_id, pool=query.pool, eligible=1)
        short = (job for job in waiting if job.timeout_ms <= query.timeout_ms_max)
        return sorted((job for job in short if job.rank >= query.floor), key=place_in_line)

    def claim(self, query: ClaimQuery) -> Claimed:
        """Take those of the next eligible jobs of a workspace that the claimer can run."""
        picked = self._in_line(query)[: query.limit]
        taken = [job for job in picked if query.kinds is None or job.kind in query.kinds]
        return Claimed([self._claim(job, query) for job in taken], len(taken) < len(picked))

    def set_aside(self, query: ClaimQuery, limit: int) -> int:
        """Make those of the next eligible jobs that the claimer cannot run wait for their kind."""
        others = [job for job in self._in_line(query)[:limit] if job.kind not in query.kinds]
        for job in others:
            self._change(job, eligible=0)
            self._tables.set_aside[JobRef(job.workspace_id, job.id)] = job.kind
        return len(others)

    def kinds_set_aside(self, pool: str, kinds: Collection[str]) -> list[str]:
        """Find of which of these kinds jobs are set aside."""
        found = {
            kind
            for ref, kind in self._tables.set_aside.items()
            if kind in kinds and self._tables.jobs[ref].pool == pool
        }
        return sorted(found)

    def recall(self, pool: str, kind: str, limit: int) -> int:
        """Make jobs of a kind that were set aside eligible again, and count them."""
        paused = {row.workspace_id for row in self.queue_pauses.list_all() if row.kind == kind}
        set_aside = [ref for ref, of in self._tables.set_aside.items() if of == kind]
        jobs = [self._tables.jobs[ref] for ref in set_aside if ref.workspace_id not in paused]
        first = sorted((job for job in jobs if job.pool == pool), key=place_in_line)[:limit]
        for job in first:
            self._change(job, eligible=1)
        return len(first)

    def put_worker(
        self,
        name: str,
        host: str,
        kinds: str,
        slots: int = 0,
        drains_at: int | None = None,
        block: str | None = None,
    ) -> None:
        """Note that a worker is running, now."""
        known = self._tables.workers.get(name)
        started_at = self.now_us if known is None else known.started_at
        self._tables.workers[name] = WorkerRow(
            name, host, kinds, started_at, self.now_us, slots, drains_at, block
        )

    def delete_worker(self, name: str) -> None:
        """Forget a worker that has stopped."""
        self._tables.workers.pop(name, None)

    def delete_silent_workers(self, seen_before: int) -> int:
        """Forget workers that were not seen for long."""
        workers = self._tables.workers
        silent = [name for name, row in workers.items() if row.last_seen_at < seen_before]
        for name in silent:
            del workers[name]
        return len(silent)

    def _no_earlier(self, job: JobRow, at: int) -> int:
        """Return a time, or that of the job's last event if it is later."""
        log = self._tables.events.get(JobRef(job.workspace_id, job.id), ())
        return max([at, *[event.at for event in log]])

    def _claim(self, job: JobRow, query: ClaimQuery) -> Claim:
        at = self._no_earlier(job, query.now)
        claimed = self._change(
            job,
            status=Status.RUNNING.value,
            eligible=0,
            fence=job.fence + 1,
            lease_owner=query.owner,
            lease_expires_at=query.expires_at,
            started_at=None if query.started_at is None else at,
            event_seq=job.event_seq + 1,
        )
        data = json.dumps({"attempt": claimed.fence, "cause": query.cause, "worker": query.owner})
        self._log(claimed, at, query.event_type, data)
        payload = self._tables.payloads[JobRef(job.workspace_id, job.id)]
        return Claim(**_picked(claimed, Claim._fields), payload=payload)

    def renew(self, renewals: Sequence[Renewal]) -> list[Renewed]:
        """Keep leases."""
        kept = []
        for ask in renewals:
            if job := self._held(*ask[:3], Status.RUNNING):
                self._change(job, lease_expires_at=ask.expires_at)
                kept.append(Renewed(*ask[:3], job.stop_request))
        return kept

    def finish(self, rows: Sequence[FinishRow]) -> list[bool]:
        """Record how running attempts ended, and log it; False for one that lost its lease."""
        ended = []
        for end in rows:
            job = self._held(*end[:3], Status.RUNNING)
            if job is not None:
                at = self._no_earlier(job, self.now_us)
                self._put_down(job, end, f"job.{end.status}", at, finished_at=at)
            ended.append(job is not None)
        return ended

    def move(self, moves: Sequence[Move]) -> list[Moved]:
        """Move jobs out of the status and fence that were seen, and log it."""
        changed = []
        for step in moves:
            if job := self._held(*step[:3], step.source):
                at = self._no_earlier(job, step.at)
                finished_at = None if step.finished_at is None else at
                to = step._replace(at=at, finished_at=finished_at)
                changed.append(self._put_down(job, to, to.event_type, at))
        return _moved(changed)

    def _put_down(
        self, job: JobRow, to: Move | FinishRow, event_type: str, at: int, **changes: Any
    ) -> JobRow:
        """Write what a job becomes: no worker holds it, and no stop request is left."""
        changed = self._change(
            job,
            **{"evaluation": None, "counts": None, **_picked(to, JobRow._fields)},
            **changes,
            lease_owner=None,
            lease_expires_at=None,
            stop_request=None,
            event_seq=job.event_seq + 1,
        )
        self._log(changed, at, event_type, to.event_data)
        self._tables.put_result(JobRef(job.workspace_id, job.id), to.result)
        return changed

    def _log(self, job: JobRow, at: int, event_type: str, data: str) -> None:
        event = NewEvent(job.workspace_id, job.id, job.event_seq, at, event_type, data)
        self._tables.add_event(event)

    # --- what holders of a lease say

    def append(self, appends: Sequence[Append]) -> list[Moved]:
        """Reserve places in event logs for the holder of the lease."""
        changed = []
        for ask in appends:
            job = self._held(*ask[:3], Status.RUNNING)
            if job and job.event_seq + ask.places <= ask.event_seq_max:
                progress = job.progress if ask.progress is None else ask.progress
                seq = job.event_seq + ask.places
                changed.append(self._change(job, event_seq=seq, progress=progress))
        return _moved(changed)

    def insert_events(self, events: Sequence[NewEvent]) -> None:
        """Append events whose places were reserved by a change of their job."""
        for event in events:
            job = self._tables.jobs[JobRef(event.workspace_id, event.job_id)]
            self._tables.add_event(event._replace(at=self._no_earlier(job, event.at)))

    def hold_output(self, leases: Sequence[LeaseRef]) -> list[HeldOutput]:
        """Find how far the output of these attempts is stored."""
        found = []
        for lease in leases:
            if self._held(*lease, Status.RUNNING):
                log = self._tables.output.get(JobRef(*lease[:2]), ())
                seq = max((batch.seq for batch in log), default=None)
                own = [batch.ends for batch in log if batch.attempt == lease.fence]
                found.append(HeldOutput(*lease, seq, max(own, default=None)))
        return found

    def insert_output(self, batches: Sequence[OutputBatch]) -> None:
        """Append output of attempts."""
        for batch in batches:
            self._tables.add_output(batch)

    def drop_output(self, dropped: Sequence[DroppedOutput]) -> None:
        """Delete the middle of what attempts wrote."""
        for drop in dropped:
            self._forget_output(drop, drop.attempt, drop.starts, drop.ends)

    def drop_attempts(self, last: Sequence[LeaseRef]) -> None:
        """Delete the output of jobs' attempts up to these."""
        for lease in last:
            for attempt in range(1, lease.fence + 1):
                self._forget_output(lease, attempt, 0, sys.maxsize)

    def _forget_output(
        self, job: DroppedOutput | LeaseRef, attempt: int, starts: int, ends: int
    ) -> None:
        ref = JobRef(job.workspace_id, job.id)
        self._tables.output[ref] = tuple(
            batch
            for batch in self._tables.output.get(ref, ())
            if batch.attempt != attempt or batch.starts < starts or batch.ends > ends
        )

    def request_stop(self, stops: Sequence[StopRow]) -> list[Moved]:
        """Ask running attempts to stop."""
        return _moved(
            self._change(job, stop_request=ask.stop_request, event_seq=job.event_seq + 1)
            for ask in stops
            if (job := self._held(*ask[:3], Status.RUNNING))
        )

    def report_started(self, lease: LeaseRef, at: int) -> list[Moved]:
        """Record that a dispatched attempt has begun."""
        job = self._held(*lease, Status.RUNNING)
        if job is None or job.started_at is not None:
            return []
        return _moved([self._change(job, started_at=at, event_seq=job.event_seq + 1)])

    # --- what needs a decision

    def lock_jobs(self, refs: Sequence[JobRef]) -> list[JobRow]:
        """Read jobs; no two transactions run at the same time."""
        return [job for ref in refs if (job := self.read_job(ref))]

    def lock_free_jobs(self, refs: Sequence[JobRef]) -> list[JobRow]:
        """Read jobs; no two transactions run at the same time."""
        return self.lock_jobs(refs)

    def due_jobs(self, pool: str, limit: int) -> list[JobRow]:
        """Find jobs whose time has come."""
        due = [
            (job.not_before, job.id, job)
            for job in self._jobs(pool=pool, eligible=0)
            if job.status in WAITING and job.not_before is not None
            if job.not_before <= self.now_us
        ]
        return [job for _, _, job in sorted(due)[:limit]]

    def expired_jobs(self, limit: int) -> list[JobRow]:
        """Find running jobs whose lease has expired."""
        gone = [
            (job.lease_expires_at, job.id, job)
            for job in self._jobs(status=Status.RUNNING)
            if job.lease_expires_at is not None and job.lease_expires_at < self.now_us
        ]
        return [job for _, _, job in sorted(gone)[:limit]]

    def overdue_jobs(self, grace_us: int, limit: int) -> list[JobRow]:
        """Find running jobs that are over their timeout although their lease is alive."""
        late = [
            job
            for job in self._jobs(status=Status.RUNNING)
            if job.started_at is not None
            and job.started_at + job.timeout_ms * 1000 < self.now_us - grace_us
        ]
        return late[:limit]

    def jobs_of_build(self, workspace_id: str, build_id: str) -> list[JobRow]:
        """Find jobs that wait for a build."""
        waiting = self._jobs(workspace_id=workspace_id, build_id=build_id, eligible=0)
        return [job for job in waiting if job.status in WAITING]

    @property
    def catalogue(self) -> MemoryVersions:
        """Change the versions of configurations."""
        return MemoryVersions(self._tables, self.now_us)

    @property
    def builds(self) -> MemoryBuilds:
        """Read and change builds."""
        return MemoryBuilds(self._tables)

    def insert_artifacts(self, new: Sequence[ArtifactRow]) -> None:
        """Remember the files that results name."""
        for row in new:
            if any(row.id == known.id for known in self._tables.artifacts.values()):
                raise ImpossibleRow("uq_artifacts_id")
            self._tables.artifacts[JobRef(row.workspace_id, row.id)] = row

    def delete_artifacts(self, refs: Sequence[JobRef]) -> None:
        """Forget the files that jobs left."""
        kept = self._tables.artifacts
        for key, row in list(kept.items()):
            if JobRef(row.workspace_id, row.job_id) in refs:
                del kept[key]

    def delete_finished(self, workspace_id: str, finished_before: int, limit: int) -> list[JobRef]:
        """Delete old finished jobs with their logs, and say which."""
        old = [
            job
            for job in self._jobs(workspace_id=workspace_id, holds_lane=0)
            if job.finished_at is not None and job.finished_at < finished_before
            if job.id not in {build.job_id for build in self._tables.builds.values()}
        ]
        refs = []
        for job in sorted(old, key=lambda job: job.id)[:limit]:
            refs.append(JobRef(job.workspace_id, job.id))
            self.delete_job(job)
        return refs

    def delete_job(self, job: JobRow) -> None:
        """Delete a finished job with its logs."""
        ref = JobRef(job.workspace_id, job.id)
        if job.execution_key is not None:
            self.forget_executions([NewExecution(job.workspace_id, job.execution_key, job.id)])
        self.delete_artifacts([ref])
        for rows in (
            self._tables.events,
            self._tables.output,
            self._tables.results,
            self._tables.payloads,
        ):
            rows.pop(ref, None)
        self._tables.agent_jobs.pop(job.id, None)
        del self._tables.jobs[ref]


def _is_counted(job: JobRow) -> bool:
    return job.status in WAITING and job.rank >= 0


def _picked(row: Any, names: Iterable[str]) -> dict[str, Any]:
    """Take some of a row's fields by name."""
    return {name: getattr(row, name) for name in names if name in row._fields}


def _moved(jobs: Iterable[JobRow]) -> list[Moved]:
    return [Moved(job.workspace_id, job.id, job.fence, job.event_seq) for job in jobs]
