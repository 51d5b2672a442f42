"""Record how attempts ended: only the holder of the fence may, and only once.

The short way, for attempts that simply ended, is one statement without a look at the job. The long
way is for those that go back into the queue: what was asked of the job meanwhile decides.
"""

import json
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

from pydantic_core import to_json

from ade.domain.errors import LeaseLost
from ade.domain.job import BLOCKS_ITS_LANE, Cause, Status, StopRequest
from ade.domain.lease import MICROSECONDS
from ade.domain.outcome import JobError, Outcome
from ade.domain.retry import backoff_seconds, tries_again
from ade.stages import transitions
from ade.stages.renew import lost
from ade.stages.rules import Rules
from ade.stages.transitions import checked_cause
from ade.store.port import Transaction
from ade.store.rows import ArtifactRow, Claim, Ending, Held, JobRef, JobRow, Lane, Move


class Finish(NamedTuple):
    """Hold an attempt and what it came to; None hands the job back unfinished."""

    claim: Claim
    outcome: Outcome | None

    @property
    def held(self) -> Held:
        """Name the attempt."""
        return Held(self.claim.workspace_id, self.claim.id, self.claim.fence)


@dataclass(frozen=True, slots=True)
class Finished:
    """Say that an attempt's end was recorded, and where the job is now."""

    status: Status


# How an attempt may end by itself, with the cause that its event records.
_CAUSES = {
    status: checked_cause(Status.RUNNING, status, cause)
    for status, cause in {
        Status.SUCCEEDED: Cause.FINISHED,
        Status.FAILED: Cause.FINISHED,
        Status.TIMED_OUT: Cause.TIMEOUT,
        Status.CANCELLED: Cause.STOPPED,
    }.items()
}
_FINISHED = {status: Finished(status) for status in _CAUSES}
_WORDS = {status: status.value for status in _CAUSES}
_EVENT_ENDS = {status: f', "cause": "{cause}"}}' for status, cause in _CAUSES.items()}


def finish(rules: Rules, tx: Transaction, ended: list[Finish]) -> list[Finished | LeaseLost]:
    """Record the ends of attempts; whoever lost the lease is told so and changes nothing."""
    if not ended:
        return []
    lanes = {Lane(claim.workspace_id, claim.target_id) for claim, _ in ended if claim.target_id}
    if lanes:
        tx.lock_lanes(list(lanes))
    each_once = len({claim.id for claim, _ in ended}) == len(ended)
    # Most succeed, and what succeeded stays so.
    others = [one for one in ended if one[1] is None or one[1].status is not Status.SUCCEEDED]
    if each_once and not any(map(_goes_back, others)):
        answers = _record(tx, ended)
    else:
        answers = _sort_out(tx, ended)
    if lanes:
        transitions.promote(tx, list(lanes))
    return answers


def _sort_out(tx: Transaction, ended: list[Finish]) -> list[Finished | LeaseLost]:
    """Record some ends and put other jobs back; who says the same twice is told that it is over."""
    once = {attempt.held: attempt for attempt in reversed(ended)}
    back = {held: attempt for held, attempt in once.items() if _goes_back(attempt)}
    simply = {held: attempt for held, attempt in once.items() if held not in back}
    recorded = dict[Held, Finished | LeaseLost]()
    if back:
        recorded |= _put_back(tx, list(back.values()))
    if simply:
        recorded |= zip(simply, _record(tx, list(simply.values())), strict=True)
    return [
        recorded.pop(attempt.held) if attempt.held in recorded else lost(attempt.held)
        for attempt in ended
    ]


def _record(tx: Transaction, attempts: list[Finish]) -> list[Finished | LeaseLost]:
    kept = tx.end([_ending(attempt) for attempt in attempts])
    recorded = list(compress(attempts, kept))
    tx.notify(*[claim.id for claim, _ in recorded])
    _name_files(tx, recorded)
    return [
        _FINISHED[attempt.outcome.status] if is_kept and attempt.outcome else lost(attempt.held)
        for attempt, is_kept in zip(attempts, kept, strict=True)
    ]


def _name_files(tx: Transaction, attempts: list[Finish]) -> None:
    """Remember what the results name, and nothing that an earlier end of the same job named."""
    again = [JobRef(claim.workspace_id, claim.id) for claim, _ in attempts if claim.fence > 1]
    if again:
        tx.delete_artifacts(again)
    new = [
        ArtifactRow(
            claim.workspace_id,
            file.id,
            claim.id,
            file.name,
            file.digest,
            file.size_bytes,
            file.content_type,
            tx.now_us,
        )
        for claim, outcome in attempts
        if outcome is not None and outcome.artifacts
        for file in outcome.artifacts
    ]
    if new:
        tx.insert_artifacts(new)


def _goes_back(attempt: Finish) -> bool:
    """Tell whether what was asked of the job meanwhile decides where it goes.

    Also for one that says it was paused: it may not have heard that it was then cancelled.
    """
    claim, outcome = attempt
    if outcome is None or outcome.status is Status.PAUSED:
        return True
    error = outcome.error
    return (
        error is not None
        and outcome.status is Status.FAILED
        and tries_again(error.category, claim.retries_left)
    )


def _ending(attempt: Finish) -> Ending:
    """Write the end of an attempt from what its claim already told, without reading the job."""
    claim, outcome = attempt
    assert outcome is not None
    status, error, fence = outcome.status, outcome.error, claim.fence
    if status not in _WORDS:
        raise ValueError(f"an attempt cannot end as {status.value}")
    return _as_ending(
        (
            claim.workspace_id,
            claim.id,
            fence,
            _WORDS[status],
            1 if claim.target_id is not None and status in BLOCKS_ITS_LANE else 0,
            _spelled(outcome.usage) if outcome.usage else None,
            _spelled(outcome.isolation) if outcome.isolation else None,
            None if error is None else _spelled(error.as_dict()),
            None if outcome.result is None else _spelled(outcome.result),
            f'{{"attempt": {fence}{_EVENT_ENDS[status]}'
            if error is None
            else _failure_data(fence, status, error),
            claim.address,
        )
    )


# Without a call of Python for each.
_as_ending = partial(tuple.__new__, Ending)


def _spelled(value: Any) -> str:
    """Spell JSON in a sixth of the time that the standard library takes, where that can be done."""
    try:
        return to_json(value).decode()
    except ValueError:  # half a surrogate pair, or very deep
        return json.dumps(value)


def _failure_data(attempt: int, status: Status, error: JobError) -> str:
    """Record what went wrong without the message, which may hold a user's values."""
    what = {"category": error.category.value, "code": error.code}
    return json.dumps({"attempt": attempt, "cause": _CAUSES[status], "error": what})


def _put_back(tx: Transaction, attempts: list[Finish]) -> dict[Held, Finished]:
    """Requeue attempts that were handed back or failed through no fault of the job."""
    rows = tx.lock_jobs([JobRef(a.claim.workspace_id, a.claim.id) for a in attempts])
    current = {Held(row.workspace_id, row.id, row.fence): row for row in rows}
    held = [a for a in attempts if (row := current.get(a.held)) and row.status == Status.RUNNING]
    steps = [_requeued(current[a.held], a.outcome, tx.now_us) for a in held]
    done = transitions.apply(tx, steps)
    transitions.notify_claimers(tx, steps, rows)
    statuses = {(step.workspace_id, step.id): step.status for step in steps}
    return {Held(*row[:3]): Finished(Status(statuses[row.workspace_id, row.id])) for row in done}


def _requeued(job: JobRow, outcome: Outcome | None, now_us: int) -> Move:
    if job.stop_request is not None:
        return transitions.move(job, stopped_status(job), Cause.STOPPED, now_us, outcome=outcome)
    if outcome is None:
        return transitions.move(job, Status.QUEUED, Cause.RELEASED, now_us, eligible=True)
    if outcome.status is Status.PAUSED:
        return transitions.move(job, Status.PAUSED, Cause.STOPPED, now_us, outcome=outcome)
    wait = backoff_seconds(job.fence)
    return transitions.move(
        job,
        Status.QUEUED,
        Cause.RETRIED,
        now_us,
        data={"backoff_seconds": wait},
        error=outcome.error,
        retries_left=job.retries_left - 1,
        not_before=now_us + wait * MICROSECONDS,
        holds_lane=True,
    )


def stopped_status(job: JobRow) -> Status:
    """Return where a stop request leads once the attempt is over."""
    return Status.CANCELLED if job.stop_request == StopRequest.CANCEL else Status.PAUSED
