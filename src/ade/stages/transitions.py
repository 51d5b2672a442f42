"""Change the status of jobs: the one way to do it, for all stages.

`checked_cause` refuses what the transition table does not have, and returns what the event log
records. Submit, claim and the fast path of finish write their own rows; they call it once for each
(source, target, cause) that they can produce. All other stages describe a change with `move` and
carry it out with `apply`. The end of a job that makes a build settles that build in the same
transaction (`settle_builds`), and the runs that wait for it go on or fail.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from ade.domain.build import (
    BUILD_FAILED,
    SETTLED_BY,
    BuildStatus,
    build_error,
    failure_reason,
)
from ade.domain.errors import InvalidTransition
from ade.domain.events import EventType, event_type, work_topic
from ade.domain.job import BLOCKS_ITS_LANE, TERMINAL, WAITING, Cause, Status, is_allowed
from ade.domain.outcome import Category, JobError, Outcome
from ade.domain.output import Stream, pieces_of
from ade.store.port import Transaction
from ade.store.rows import Build, JobRef, JobRow, Lane, Move, Moved, NewEvent

# How much of a build's log its runs repeat.
BATCHES_READ_MAX = 32
STEPS_MAX = 20


@cache
def checked_cause(source: Status | None, target: Status, cause: Cause) -> str:
    """Return the cause as the event log records it, or refuse a change that is not in the table."""
    if not is_allowed(source, target, cause):
        before = f"A job that is {source.value}" if source else "A new job"
        raise InvalidTransition(f"{before} cannot become {target.value}.")
    return cause.value


def move(
    job: JobRow,
    status: Status,
    cause: Cause,
    now_us: int,
    *,
    data: dict[str, Any] | None = None,
    error: JobError | None = None,
    outcome: Outcome | None = None,
    retries_left: int | None = None,
    not_before: int | None = None,
    eligible: bool = False,
    holds_lane: bool | None = None,
    result: dict[str, Any] | None = None,
) -> Move:
    """Describe a change of status of a job as it was read; refuse one that is not in the table."""
    recorded = {
        "attempt": job.fence,
        "cause": checked_cause(Status(job.status), status, cause),
        **(data or {}),
    }
    if outcome is not None:
        error, result = outcome.error, outcome.result
    if error is not None:
        recorded["error"] = {"category": error.category.value, "code": error.code}
    if holds_lane is None:
        holds_lane = status in BLOCKS_ITS_LANE or eligible
    return Move(
        workspace_id=job.workspace_id,
        id=job.id,
        fence=job.fence,
        source=job.status,
        status=status.value,
        eligible=int(eligible),
        holds_lane=int(holds_lane and job.target_id is not None),
        retries_left=job.retries_left if retries_left is None else retries_left,
        not_before=not_before,
        started_at=None if status in WAITING else job.started_at,
        finished_at=now_us if status in TERMINAL else None,
        usage=json.dumps(outcome.usage) if outcome and outcome.usage else None,
        isolation=json.dumps(list(outcome.isolation)) if outcome else None,
        error=json.dumps(error.as_dict()) if error is not None else None,
        at=now_us,
        event_type=event_type(status, cause).value,
        event_data=json.dumps(recorded),
        result=json.dumps(result) if result is not None else None,
    )


def apply(tx: Transaction, moves: list[Move]) -> list[Moved]:
    """Carry out moves, and notify the waiters for these jobs."""
    if not moves:
        return []
    moved = tx.move(moves)
    for row in moved:
        tx.notify(row.id)
    ended = {move.id for move in moves if move.finished_at is not None}
    settle_builds(tx, [JobRef(row.workspace_id, row.id) for row in moved if row.id in ended])
    return moved


def settle_builds(tx: Transaction, ended: Sequence[JobRef]) -> None:
    """Record what became of the builds that ended jobs were to make, and let their runs go on."""
    for build in tx.builds.of_jobs(ended):
        ref = JobRef(build.workspace_id, str(build.job_id))
        job = tx.read_job(ref)
        assert job is not None
        settled = _settled(build, job, tx.read_result(ref))
        tx.builds.settle(settled)
        _settle_activation(tx, settled)
        release_runs(tx, settled)


def _settled(build: Build, job: JobRow, result: str | None) -> Build:
    """Say what became of a build, in words about builds."""
    status = SETTLED_BY[Status(job.status)]
    # Only a build that succeeded is sure to have a report in its result.
    report = (
        json.loads(result or "{}")["outputs"]["result_json"] if status is BuildStatus.READY else {}
    )
    return build._replace(
        status=status.value,
        error=build_error(job.error, job.fence) if status is BuildStatus.FAILED else None,
        environment=report.get("environment"),
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def _settle_activation(tx: Transaction, build: Build) -> None:
    """Make a version that waited for its build the active one, or give that up."""
    known = tx.builds.activation(build.workspace_id, build.configuration_id)
    if known is None or known.pending_version_id != build.version_id:
        return
    by = known.pending_by
    known = known._replace(pending_version_id=None, pending_by=None)
    if build.status == BuildStatus.READY:
        known = known._replace(version_id=build.version_id, activated_at=tx.now_us, activated_by=by)
    tx.builds.put_activation(known)


def release_runs(tx: Transaction, build: Build) -> None:
    """Make the runs that wait for a settled build eligible, or fail them with its reason."""
    waiting = [
        job
        for job in tx.jobs_of_build(build.workspace_id, build.id)
        if job.status == Status.QUEUED and job.not_before is None
    ]
    if not waiting:
        return
    if build.status != BuildStatus.READY:
        fail_runs(tx, build, waiting)
        return
    data = {"build": build_story(tx, build)}
    moves = [
        move(job, Status.QUEUED, Cause.BUILD_READY, tx.now_us, eligible=True, data=data)
        for job in waiting
    ]
    apply(tx, moves)
    notify_claimers(tx, moves, waiting)


def fail_runs(tx: Transaction, build: Build, runs: list[JobRow]) -> None:
    """Fail runs for the reason for which their build is of no use."""
    reason = f"build failed: {failure_reason(build.status, build.error)}"
    error = JobError(Category.DEPENDENCY_ERROR, BUILD_FAILED, reason)
    data = {"build": build_story(tx, build)}
    apply(
        tx,
        [
            move(job, Status.FAILED, Cause.UNRUNNABLE, tx.now_us, error=error, data=data)
            for job in runs
        ],
    )


def build_story(tx: Transaction, build: Build) -> dict[str, Any]:
    """Say for the events of its runs what became of a build, and which steps it took.

    `job_id` names the job whose events and output tell more.
    """
    story: dict[str, Any] = {"build_id": build.id, "status": build.status}
    if build.started_at is not None and build.finished_at is not None:
        story["duration_ms"] = (build.finished_at - build.started_at) // 1000
    if build.job_id is None:
        return story
    written = tx.read_output(JobRef(build.workspace_id, build.job_id), 0, BATCHES_READ_MAX)
    pieces = [piece for batch in written for piece in pieces_of(batch.pieces)]
    steps = "".join(piece.text for piece in pieces if piece.stream == Stream.STEP).splitlines()
    return {**story, "job_id": build.job_id, "steps": steps[:STEPS_MAX]}


def log(tx: Transaction, changed: list[Moved], event: EventType, data: dict[str, Any]) -> None:
    """Log a change that leaves the status as it is, in the place that the change reserved."""
    text = json.dumps(data)
    tx.insert_events(
        [
            NewEvent(row.workspace_id, row.id, row.event_seq, tx.now_us, event.value, text)
            for row in changed
        ]
    )
    for row in changed:
        tx.notify(row.id)


def lanes_of(jobs: list[JobRow]) -> list[Lane]:
    """Name the lanes that jobs are on."""
    return list({Lane(job.workspace_id, job.target_id): None for job in jobs if job.target_id})


def promote(tx: Transaction, lanes: list[Lane]) -> None:
    """Make the next job of each lane that has become free eligible."""
    if lanes:
        for head in tx.promote_lanes(lanes):
            tx.notify(work_topic(head.pool))


def notify_claimers(tx: Transaction, moves: list[Move], jobs: list[JobRow]) -> None:
    """Tell claimers when a move made jobs eligible."""
    made_eligible = {move.id for move in moves if move.eligible}
    for pool in {job.pool for job in jobs if job.id in made_eligible}:
        tx.notify(work_topic(pool))
