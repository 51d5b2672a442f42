"""Record how attempts ended: only the holder of the fence may, and only once.

The short way, for attempts that simply ended, is one statement without a look at the job. The long
way is for those that go back into the queue: what was asked of the job meanwhile decides.
"""

import json
from dataclasses import dataclass

from ade.domain.errors import LeaseLost
from ade.domain.events import OF_STATUS, EventType
from ade.domain.job import BLOCKS_ITS_LANE, TERMINAL, Status, StopRequest
from ade.domain.lease import MICROSECONDS
from ade.domain.outcome import Outcome
from ade.domain.retry import backoff_seconds, tries_again
from ade.stages import moves
from ade.stages.renew import lost
from ade.stages.rules import Rules
from ade.store.port import Transaction
from ade.store.rows import Claim, Held, JobRef, JobRow, Lane, Move


@dataclass(frozen=True, slots=True)
class Finished:
    """Hold an attempt and what it came to; None hands the job back unfinished."""

    claim: Claim
    outcome: Outcome | None

    @property
    def held(self) -> Held:
        """Name the attempt."""
        return Held(self.claim.workspace_id, self.claim.id, self.claim.fence)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Say that an attempt's end was recorded, and where the job is now."""

    status: Status


def finish(rules: Rules, tx: Transaction, ended: list[Finished]) -> list[Recorded | LeaseLost]:
    """Record the ends of attempts; whoever lost the lease is told so and changes nothing."""
    first_of: dict[Held, Finished] = {}
    for attempt in ended:
        first_of.setdefault(attempt.held, attempt)
    unique = list(first_of.values())
    lanes = list(
        {Lane(a.claim.workspace_id, a.claim.target_id) for a in unique if a.claim.target_id}
    )
    if lanes:
        tx.lock_lanes(lanes)
    short = [a for a in unique if not _goes_back(a)]
    long = [a for a in unique if _goes_back(a)]
    recorded: dict[Held, Recorded] = {}
    if short:
        steps = [_ended(attempt, tx.now_us) for attempt in short]
        statuses = {(step.workspace_id, step.id): step.status for step in steps}
        for row in moves.apply(tx, steps):
            recorded[Held(*row[:3])] = Recorded(Status(statuses[row.workspace_id, row.id]))
    if long:
        recorded |= _put_back(tx, long)
    moves.promote(tx, lanes)
    answers: list[Recorded | LeaseLost] = []
    for attempt in ended:
        told_first = first_of[attempt.held] is attempt
        answer = recorded.get(attempt.held) if told_first else None
        answers.append(answer or lost(attempt.held))
    return answers


def _goes_back(attempt: Finished) -> bool:
    if attempt.outcome is None:
        return True
    error = attempt.outcome.error
    return (
        attempt.outcome.status is Status.FAILED
        and error is not None
        and tries_again(error.category, attempt.claim.retries_left)
    )


def _ended(attempt: Finished, now_us: int) -> Move:
    """Write the end of an attempt from what its claim already told, without reading the job."""
    claim, outcome = attempt.claim, attempt.outcome
    assert outcome is not None
    status, error = outcome.status, outcome.error
    if status not in TERMINAL and status is not Status.PAUSED:
        raise ValueError(f"an attempt cannot end as {status.value}")
    told = (
        f'{{"attempt": {claim.fence}}}'
        if error is None
        else json.dumps(
            {
                "attempt": claim.fence,
                "error": {"category": error.category.value, "code": error.code},
            }
        )
    )
    return Move(
        workspace_id=claim.workspace_id,
        id=claim.id,
        fence=claim.fence,
        source="running",
        status=status.value,
        eligible=0,
        holds_lane=int(claim.target_id is not None and status in BLOCKS_ITS_LANE),
        retries_left=claim.retries_left,
        not_before=None,
        started_at=claim.started_at,
        finished_at=now_us if status in TERMINAL else None,
        usage=json.dumps(outcome.usage) if outcome.usage else None,
        isolation=json.dumps(outcome.isolation) if outcome.isolation else None,
        error=json.dumps(error.as_dict()) if error is not None else None,
        at=now_us,
        event_type=OF_STATUS[status].value,
        event_data=told,
        result=json.dumps(outcome.result) if outcome.result is not None else None,
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
