"""Record how attempts ended: only the holder of the fence may, and only once.

The short way, for attempts that simply ended, is one statement without a look at the job. The long
way is for those that go back into the queue: what was asked of the job meanwhile decides.
"""

import json
from dataclasses import dataclass
from itertools import compress
from typing import Any

from pydantic_core import to_json

from ade.domain.errors import LeaseLost
from ade.domain.events import EventType
from ade.domain.job import BLOCKS_ITS_LANE, TERMINAL, Status, StopRequest
from ade.domain.lease import MICROSECONDS
from ade.domain.outcome import JobError, Outcome
from ade.domain.retry import backoff_seconds, tries_again
from ade.stages import moves
from ade.stages.renew import lost
from ade.stages.rules import Rules, job_topic
from ade.store.port import Transaction
from ade.store.rows import ArtifactRow, Claim, Ending, Held, JobRef, JobRow, Lane, Move


class Finished:
    """Hold an attempt and what it came to; None hands the job back unfinished."""

    __slots__ = ("claim", "held", "outcome")

    def __init__(self, claim: Claim, outcome: Outcome | None) -> None:
        self.claim = claim
        self.outcome = outcome
        self.held = Held(claim.workspace_id, claim.id, claim.fence)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Say that an attempt's end was recorded, and where the job is now."""

    status: Status


_RECORDED = {status: Recorded(status) for status in (*TERMINAL, Status.PAUSED)}
_WORDS = {status: status.value for status in _RECORDED}


def finish(rules: Rules, tx: Transaction, ended: list[Finished]) -> list[Recorded | LeaseLost]:
    """Record the ends of attempts; whoever lost the lease is told so and changes nothing."""
    lanes = {Lane(a.claim.workspace_id, a.claim.target_id) for a in ended if a.claim.target_id}
    if lanes:
        tx.lock_lanes(list(lanes))
    once = {attempt.held: attempt for attempt in reversed(ended)}
    simply, back = list[Finished](), list[Finished]()
    for attempt in once.values():
        (back if _goes_back(attempt) else simply).append(attempt)
    recorded = _put_back(tx, back) if back else {}
    if simply:
        recorded |= _record(tx, simply)
    if lanes:
        moves.promote(tx, list(lanes))
    if len(once) == len(ended):
        return [recorded.get(attempt.held) or lost(attempt.held) for attempt in ended]
    # Popped: whoever says the same a second time, in the same breath, is told that it is over.
    return [
        recorded.pop(attempt.held) if attempt.held in recorded else lost(attempt.held)
        for attempt in ended
    ]


def _record(tx: Transaction, attempts: list[Finished]) -> dict[Held, Recorded]:
    endings = [_ending(attempt, tx.now_us) for attempt in attempts]
    kept = list(compress(attempts, tx.end(endings)))
    tx.wake(*[job_topic(attempt.held.id) for attempt in kept])
    _name_files(tx, kept)
    return {attempt.held: _RECORDED[attempt.outcome.status] for attempt in kept if attempt.outcome}


def _name_files(tx: Transaction, attempts: list[Finished]) -> None:
    """Remember what the results name, and nothing that an earlier end of the same job named."""
    again = [JobRef(a.held.workspace_id, a.held.id) for a in attempts if a.held.fence > 1]
    if again:
        tx.delete_artifacts(again)
    new = [
        ArtifactRow(
            attempt.held.workspace_id,
            file.id,
            attempt.held.id,
            file.name,
            file.digest,
            file.size_bytes,
            file.content_type,
            tx.now_us,
        )
        for attempt in attempts
        if attempt.outcome is not None and attempt.outcome.artifacts
        for file in attempt.outcome.artifacts
    ]
    if new:
        tx.insert_artifacts(new)


def _goes_back(attempt: Finished) -> bool:
    """Tell whether what was asked of the job meanwhile decides where it goes.

    Also for one that says it was paused: it may not have heard that it was then cancelled.
    """
    outcome = attempt.outcome
    if outcome is None or outcome.status is Status.PAUSED:
        return True
    error = outcome.error
    return (
        error is not None
        and outcome.status is Status.FAILED
        and tries_again(error.category, attempt.claim.retries_left)
    )


def _ending(attempt: Finished, now_us: int) -> Ending:
    """Write the end of an attempt from what its claim already told, without reading the job."""
    outcome, claim = attempt.outcome, attempt.claim
    assert outcome is not None
    status, error, result = outcome.status, outcome.error, outcome.result
    if status not in _RECORDED:
        raise ValueError(f"an attempt cannot end as {status.value}")
    workspace_id, id_, fence = attempt.held
    return Ending(
        workspace_id,
        id_,
        fence,
        _WORDS[status],
        1 if claim.target_id is not None and status in BLOCKS_ITS_LANE else 0,
        now_us,
        None if status is Status.PAUSED else now_us,
        _spelled(outcome.usage) if outcome.usage else None,
        _spelled(outcome.isolation) if outcome.isolation else None,
        _spelled(error.as_dict()) if error is not None else None,
        _spelled(result) if result is not None else None,
        f'{{"attempt": {fence}}}' if error is None else _told(fence, error),
        claim.address,
    )


def _spelled(value: Any) -> str:
    """Spell JSON in a sixth of the time that the standard library takes, where that can be done."""
    try:
        return to_json(value).decode()
    except ValueError:  # half a surrogate pair, or very deep
        return json.dumps(value)


def _told(attempt: int, error: JobError) -> str:
    """Say in the log what went wrong, without the words that may hold a user's values."""
    return json.dumps(
        {"attempt": attempt, "error": {"category": error.category.value, "code": error.code}}
    )


def _put_back(tx: Transaction, attempts: list[Finished]) -> dict[Held, Recorded]:
    """Requeue attempts that were handed back or failed through no fault of the job."""
    rows = tx.lock_jobs([JobRef(a.claim.workspace_id, a.claim.id) for a in attempts])
    current = {Held(row.workspace_id, row.id, row.fence): row for row in rows}
    held = [a for a in attempts if (row := current.get(a.held)) and row.status == Status.RUNNING]
    steps = [_requeued(current[a.held], a.outcome, tx.now_us) for a in held]
    done = moves.apply(tx, steps)
    moves.wake_claimers(tx, steps, rows)
    statuses = {(step.workspace_id, step.id): step.status for step in steps}
    return {Held(*row[:3]): Recorded(Status(statuses[row.workspace_id, row.id])) for row in done}


def _requeued(job: JobRow, outcome: Outcome | None, now_us: int) -> Move:
    if job.stop_request is not None:
        return moves.move(job, stopped_status(job), now_us, outcome=outcome)
    if outcome is None:
        return moves.move(job, Status.QUEUED, now_us, event=EventType.RELEASED, eligible=True)
    if outcome.status is Status.PAUSED:
        return moves.move(job, Status.PAUSED, now_us, outcome=outcome)
    wait = backoff_seconds(job.fence)
    return moves.move(
        job,
        Status.QUEUED,
        now_us,
        event=EventType.RETRIED,
        data={"backoff_seconds": wait},
        error=outcome.error,
        retries_left=job.retries_left - 1,
        not_before=now_us + wait * MICROSECONDS,
        holds_lane=True,
    )


def stopped_status(job: JobRow) -> Status:
    """Return where a stop request leads once the attempt is over."""
    return Status.CANCELLED if job.stop_request == StopRequest.CANCEL else Status.PAUSED
