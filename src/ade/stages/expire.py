"""Repair what time has passed over: lost leases, overdue jobs, timers, lanes.

It runs in every server, outside of the queue that it repairs; two at once are harmless: each row is
locked and looked at again before it is changed. Expiry is by missed heartbeat, never by age;
a running job whose lease is alive belongs to someone, also right after a start.
"""

from dataclasses import dataclass, field

from ade.domain.job import Cause, Status
from ade.domain.outcome import lease_lost_error, timed_out_error
from ade.stages import transitions
from ade.stages.finish import stopped_status
from ade.stages.place import settled_builds
from ade.stages.rules import AGENT, LOCAL, Rules, stop_topic
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow, Move

ROWS_PER_SWEEP_MAX = 500


@dataclass(frozen=True, slots=True)
class Swept:
    """Count what a sweep repaired; `more` says that it stopped at its limit, `moved` names jobs."""

    lost: int = 0
    timed_out: int = 0
    due: int = 0
    lanes: int = 0
    more: bool = False
    moved: tuple[JobRef, ...] = field(default=(), compare=False)


def expire(rules: Rules, tx: Transaction, asks: list[bool | None]) -> list[Swept]:
    """Sweep once, for all who asked; deeply, if one of them asked for that.

    A deep sweep also looks for lanes that stand still, which takes as long as the lanes are. None
    is known to: promotion happens in the transaction that frees a lane.
    """
    swept = _sweep(rules, tx, deep=any(asks))
    return [swept for _ in asks]


def _sweep(rules: Rules, tx: Transaction, *, deep: bool) -> Swept:
    lost = tx.expired_jobs(ROWS_PER_SWEEP_MAX)
    late = tx.overdue_jobs(rules.overdue_grace_us, ROWS_PER_SWEEP_MAX)
    due = [job for pool in (LOCAL, AGENT) for job in tx.due_jobs(pool, ROWS_PER_SWEEP_MAX)]
    stalled = tx.stalled_lanes(ROWS_PER_SWEEP_MAX) if deep else []
    more = any(len(rows) >= ROWS_PER_SWEEP_MAX for rows in (lost, late, due, stalled))
    # All lanes before any job, as everyone does it, or two would wait for each other.
    lanes = {*stalled, *transitions.lanes_of([*lost, *late, *due])}
    if lanes:
        tx.lock_lanes(list(lanes))
    lost = _seize(tx, lost)
    _move_all(tx, lost, [_lost(job, tx.now_us) for job in lost])
    late = _seize(tx, late)
    _move_all(tx, late, [_timed_out(job, tx.now_us) for job in late])
    for job in late:
        tx.notify(stop_topic(job.lease_owner or ""))
    due = _seize(tx, due)
    _queue_due(tx, due)
    transitions.promote(tx, list(lanes))
    moved = tuple(JobRef(job.workspace_id, job.id) for job in (*lost, *late))
    return Swept(len(lost), len(late), len(due), len(stalled), more, moved)


def _seize(tx: Transaction, seen: list[JobRow]) -> list[JobRow]:
    """Lock jobs, and return those that are still as seen: nobody renewed or moved them."""
    if not seen:
        return []
    found = tx.lock_free_jobs([JobRef(job.workspace_id, job.id) for job in seen])
    locked = {(job.workspace_id, job.id): job for job in found}
    return [job for job in seen if locked.get((job.workspace_id, job.id)) == job]


def _move_all(tx: Transaction, jobs: list[JobRow], steps: list[Move]) -> None:
    transitions.apply(tx, steps)
    transitions.notify_claimers(tx, steps, jobs)


def _lost(job: JobRow, now_us: int) -> Move:
    """Decide about a job whose worker vanished."""
    data = {"worker": job.lease_owner}
    if job.stop_request is not None:
        return transitions.move(job, stopped_status(job), Cause.STOPPED, now_us, data=data)
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


def _timed_out(job: JobRow, now_us: int) -> Move:
    error = timed_out_error(job.timeout_ms)
    return transitions.move(job, Status.TIMED_OUT, Cause.TIMEOUT, now_us, error=error)


def _queue_due(tx: Transaction, due: list[JobRow]) -> None:
    """End the wait of jobs whose time has come: scheduled ones, and those that are tried again.

    A job on a lane then waits for the lane unless it holds it, and a run waits for its build.
    """
    settled = settled_builds(tx, [(job.workspace_id, job.build_id) for job in due])
    steps = []
    for job in due:
        free = job.target_id is None or bool(job.holds_lane)
        eligible = free and (job.build_id is None or job.build_id in settled)
        steps.append(transitions.move(job, Status.QUEUED, Cause.DUE, tx.now_us, eligible=eligible))
    _move_all(tx, due, steps)
