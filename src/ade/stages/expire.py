"""Sweep: handle lost leases, overdue jobs, timers and lanes that stand still.

Every server sweeps, and two sweeps at once are harmless: each row is locked and compared with what
was seen before it is changed. A lease expires because it was not renewed, never because of the
job's age: a running job whose lease is alive belongs to a worker, even right after a restart.

The rule about time. A row's age is known only as far as the clock has run evenly: since this
process first asked the database for its time, or since a step of the database's clock
(`Clock.steady_since`). Before it has run evenly for one lease length, no lease expires, so healthy
workers renew in the new time first. A job is overdue only if its timeout fits into that time.
"""

from dataclasses import dataclass, field

from ade.clock import Clock
from ade.domain.agent_pool import is_agent_pool
from ade.domain.events import stop_topic
from ade.domain.job import LOCAL_POOL, STOPPED_STATUS, Cause, Status, StopRequest
from ade.domain.outcome import agent_lost_error, lease_lost_error, timed_out_error
from ade.domain.staleness import Verdict, verdict
from ade.domain.units import MICROSECONDS
from ade.stages import transitions
from ade.stages.agents.hosts import forget_hosts
from ade.stages.agents.status_time import note_status_change
from ade.stages.builds import settled_builds
from ade.stages.kernel_settings import KernelSettings
from ade.stages.workers import forget_silent
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow, Move

ROWS_PER_SWEEP_MAX = 500


@dataclass(frozen=True, slots=True)
class Swept:
    """Count what a sweep changed.

    `more` is true if the sweep stopped at its limit. `moved` names the jobs whose attempt it ended.
    """

    lost: int = 0
    timed_out: int = 0
    due: int = 0
    lanes: int = 0
    more: bool = False
    moved: tuple[JobRef, ...] = field(default=(), compare=False)


def expire(
    settings: KernelSettings, clock: Clock, tx: Transaction, requests: list[bool | None]
) -> list[Swept]:
    """Sweep once for all requests; deeply, if one of them is true.

    A deep sweep also looks for lanes that stand still, and reads all waiting jobs of all lanes. No
    stage is known to leave such a lane: the transaction that frees a lane promotes its next job.
    """
    steady_seconds = clock.monotonic() - clock.steady_since
    swept = _sweep(settings, tx, steady_seconds, deep=any(requests))
    return [swept for _ in requests]


def _sweep(
    settings: KernelSettings, tx: Transaction, steady_seconds: float, *, deep: bool
) -> Swept:
    forget_silent(tx)
    forget_hosts(tx)
    is_steady = steady_seconds >= settings.lease.lease_seconds
    lost = tx.expired_jobs(ROWS_PER_SWEEP_MAX) if is_steady else []
    lost = [job for job in lost if not is_agent_pool(job.pool)]
    stale = _stale(settings, tx, steady_seconds)
    late = [
        job
        for job in tx.overdue_jobs(settings.overdue_grace_us, ROWS_PER_SWEEP_MAX)
        if job.timeout_ms * 1000 + settings.overdue_grace_us <= steady_seconds * MICROSECONDS
    ]
    due = tx.due_jobs(LOCAL_POOL, ROWS_PER_SWEEP_MAX) + tx.agent_jobs.due(ROWS_PER_SWEEP_MAX)
    stalled = tx.stalled_lanes(ROWS_PER_SWEEP_MAX) if deep else []
    more = any(len(rows) >= ROWS_PER_SWEEP_MAX for rows in (lost, stale, late, due, stalled))
    # Lock lanes before jobs, as every stage does, so that no two transactions deadlock.
    lanes = {*stalled, *transitions.lanes_of([*lost, *stale, *late, *due])}
    if lanes:
        tx.lock_lanes(list(lanes))
    lost = _lock_unchanged(tx, lost)
    _move_all(tx, lost, [_lose(job, tx.now_us) for job in lost])
    given_up = _lock_unchanged(tx, list(stale))
    _move_all(tx, given_up, [_give_up(job, stale[job], tx.now_us) for job in given_up])
    for job in given_up:
        note_status_change(tx, job)
    late = _lock_unchanged(tx, late)
    _move_all(tx, late, [_time_out(job, tx.now_us) for job in late])
    for job in late:
        tx.notify(stop_topic(job.lease_owner or ""))
    due = _lock_unchanged(tx, due)
    _queue_due(tx, due)
    transitions.promote(tx, list(lanes))
    moved = tuple(JobRef(job.workspace_id, job.id) for job in (*lost, *given_up, *late))
    return Swept(len(lost) + len(given_up), len(late), len(due), len(stalled), more, moved)


def _stale(
    settings: KernelSettings, tx: Transaction, steady_seconds: float
) -> dict[JobRow, Verdict]:
    """Find the jobs of agents that are to be given up, and what becomes of each."""
    rule, now_us = settings.staleness, tx.now_us
    if steady_seconds < rule.settling_seconds:
        return {}
    verdicts = {
        job: verdict(
            rule,
            now_us,
            may_have_run=job.started_at is not None or job.stop_request is not None,
            expires_at=job.lease_expires_at or now_us,
            seen_at=seen_at,
        )
        for job, seen_at in tx.agent_jobs.stale(rule.silent_before(now_us), ROWS_PER_SWEEP_MAX)
    }
    return {job: found for job, found in verdicts.items() if found is not Verdict.KEEP}


def _lock_unchanged(tx: Transaction, seen: list[JobRow]) -> list[JobRow]:
    """Lock jobs, and return those that were not renewed or changed since they were read."""
    if not seen:
        return []
    found = tx.lock_free_jobs([JobRef(job.workspace_id, job.id) for job in seen])
    locked = {(job.workspace_id, job.id): job for job in found}
    return [job for job in seen if locked.get((job.workspace_id, job.id)) == job]


def _move_all(tx: Transaction, jobs: list[JobRow], moves: list[Move]) -> None:
    transitions.apply(tx, moves)
    transitions.notify_claimers(tx, moves, jobs)


def _lose(job: JobRow, now_us: int) -> Move:
    """Decide about a job whose worker stopped renewing; only a started attempt uses up a retry."""
    data = {"worker": job.lease_owner}
    if job.stop_request is not None:
        stopped = STOPPED_STATUS[StopRequest(job.stop_request)]
        return transitions.move(job, stopped, Cause.STOPPED, now_us, data=data)
    if job.started_at is None or job.retries_left > 0:
        return transitions.move(
            job,
            Status.QUEUED,
            Cause.LEASE_LOST,
            now_us,
            data=data,
            retries_left=job.retries_left - (job.started_at is not None),
            eligible=True,
        )
    error = lease_lost_error(job.fence)
    return transitions.move(job, Status.FAILED, Cause.LEASE_LOST, now_us, data=data, error=error)


def _give_up(job: JobRow, becomes: Verdict, now_us: int) -> Move:
    """Queue or fail a job whose agent has gone silent."""
    data = {"worker": job.lease_owner}
    if becomes is Verdict.REQUEUE:
        return transitions.move(
            job, Status.QUEUED, Cause.LEASE_LOST, now_us, data=data, eligible=True
        )
    error = agent_lost_error(job.lease_owner, job.fence)
    return transitions.move(job, Status.FAILED, Cause.LEASE_LOST, now_us, data=data, error=error)


def _time_out(job: JobRow, now_us: int) -> Move:
    error = timed_out_error(job.timeout_ms)
    return transitions.move(job, Status.TIMED_OUT, Cause.TIMEOUT, now_us, error=error)


def _queue_due(tx: Transaction, due: list[JobRow]) -> None:
    """End the wait of jobs whose time has come: scheduled ones, and those that are tried again.

    A job on a lane then waits for the lane unless it holds it, and a run waits for its build.
    """
    settled = settled_builds(tx, [(job.workspace_id, job.build_id) for job in due])
    moves = []
    for job in due:
        free = job.target_id is None or bool(job.holds_lane)
        eligible = free and settled.lets_start(job.build_id)
        moves.append(transitions.move(job, Status.QUEUED, Cause.DUE, tx.now_us, eligible=eligible))
    _move_all(tx, due, moves)
    for build in settled.unusable:
        transitions.release_runs(tx, build)
