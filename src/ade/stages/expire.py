"""Repair what time has passed over: lost leases, overdue jobs, timers, lanes.

It runs in every server, outside of the queue that it repairs; two at once are harmless: each row is
locked and looked at again before it is changed. Expiry is by missed heartbeat, never by age;
a running job whose lease is alive belongs to someone, also right after a start.
"""

from dataclasses import dataclass, field

from ade.domain.events import EventType
from ade.domain.job import Status
from ade.domain.outcome import lease_lost_error, timed_out_error
from ade.stages import moves
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
    lanes = {*stalled, *moves.lanes_of([*lost, *late, *due])}
    if lanes:
        tx.lock_lanes(list(lanes))
    lost = _seize(tx, lost)
    _move_all(tx, lost, [_lost(job, tx.now_us) for job in lost])
    late = _seize(tx, late)
    _move_all(tx, late, [_timed_out(job, tx.now_us) for job in late])
    for job in late:
        tx.wake(stop_topic(job.lease_owner or ""))
    due = _seize(tx, due)
    _queue_due(tx, due)
    moves.promote(tx, list(lanes))
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
    moves.apply(tx, steps)
    moves.wake_claimers(tx, steps, jobs)


def _lost(job: JobRow, now_us: int) -> Move:
    """Decide about a job whose worker vanished."""
    told = {"worker": job.lease_owner}
    if job.stop_request is not None:
        return moves.move(job, stopped_status(job), now_us, data=told)
    if job.started_at is None:
        return moves.move(
            job, Status.QUEUED, now_us, event=EventType.LOST, data=told, eligible=True
        )
    if job.retries_left > 0:
        return moves.move(
            job,
            Status.QUEUED,
            now_us,
            event=EventType.LOST,
            data=told,
            retries_left=job.retries_left - 1,
            eligible=True,
        )
    return moves.move(job, Status.FAILED, now_us, data=told, error=lease_lost_error(job.fence))


def _timed_out(job: JobRow, now_us: int) -> Move:
    return moves.move(job, Status.TIMED_OUT, now_us, error=timed_out_error(job.timeout_ms))


def _queue_due(tx: Transaction, due: list[JobRow]) -> None:
    """Queue jobs whose time has come.

    Those on a lane wait for their turn, unless they hold it; runs wait for their build.
    """
    settled = settled_builds(tx, [(job.workspace_id, job.build_id) for job in due])
    steps = []
    for job in due:
        free = job.target_id is None or bool(job.holds_lane)
        steps.append(
            moves.move(
                job,
                Status.QUEUED,
                tx.now_us,
                eligible=free and (job.build_id is None or job.build_id in settled),
                forced=job.status == Status.QUEUED,  # a retry whose wait is over stays queued
            )
        )
    _move_all(tx, due, steps)
