"""Record how attempts ended: only the holder of the fence may, and only once.

The fast path, for attempts that simply ended, is one statement without reading the job. The slow
path is for jobs that may go back into the queue: it reads whether a stop was requested meanwhile.
"""

import json
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import NamedTuple

from ade.domain.build import KIND as BUILD
from ade.domain.errors import LeaseLost
from ade.domain.job import BLOCKS_ITS_LANE, STOPPED_STATUS, Cause, Status, StopRequest
from ade.domain.outcome import JobError, Outcome
from ade.domain.retry import backoff_seconds, tries_again
from ade.domain.units import MICROSECONDS
from ade.stages import transitions
from ade.stages.json_text import json_text
from ade.stages.kernel_settings import KernelSettings
from ade.stages.output import OutputAppend, append_output
from ade.stages.renew import lease_lost
from ade.stages.transitions import checked_cause
from ade.store.port import Transaction
from ade.store.rows import ArtifactRow, Claim, FinishRow, JobRef, JobRow, Lane, LeaseRef, Move


class Finish(NamedTuple):
    """Hold an attempt and its outcome; None hands the job back unfinished.

    `output` is what it wrote and was not stored yet.
    """

    claim: Claim
    outcome: Outcome | None
    output: OutputAppend | None = None

    @property
    def lease(self) -> LeaseRef:
        """Name the attempt."""
        return LeaseRef(self.claim.workspace_id, self.claim.id, self.claim.fence)


@dataclass(frozen=True, slots=True)
class Finished:
    """Say that the end of an attempt was recorded, and the status of the job now."""

    status: Status


# The statuses in which an attempt may end on the fast path, with the cause that the event records.
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


def finish(
    settings: KernelSettings, tx: Transaction, finishes: list[Finish]
) -> list[Finished | LeaseLost]:
    """Record the ends of attempts; one that lost its lease changes nothing and gets LeaseLost."""
    if not finishes:
        return []
    claims = [one.claim for one in finishes]
    lanes = {Lane(claim.workspace_id, claim.target_id) for claim in claims if claim.target_id}
    if lanes:
        tx.lock_lanes(list(lanes))
    if unstored := [one.output for one in finishes if one.output is not None]:
        append_output(settings, tx, unstored)
    each_once = len({claim.id for claim in claims}) == len(finishes)
    # Most attempts succeed, and those never go back: look at the others only.
    others = [one for one in finishes if one[1] is None or one[1].status is not Status.SUCCEEDED]
    if each_once and not any(map(_may_go_back, others)):
        answers = _record(tx, finishes)
    else:
        answers = _record_or_requeue(tx, finishes)
    if lanes:
        transitions.promote(tx, list(lanes))
    return answers


def _record_or_requeue(tx: Transaction, finishes: list[Finish]) -> list[Finished | LeaseLost]:
    """Record some ends and requeue other jobs; the second finish of one attempt gets LeaseLost."""
    once = {one.lease: one for one in reversed(finishes)}
    back = {lease: one for lease, one in once.items() if _may_go_back(one)}
    simple = {lease: one for lease, one in once.items() if lease not in back}
    finished = dict[LeaseRef, Finished | LeaseLost]()
    if back:
        finished |= _requeue(tx, list(back.values()))
    if simple:
        finished |= zip(simple, _record(tx, list(simple.values())), strict=True)
    return [
        finished.pop(one.lease) if one.lease in finished else lease_lost(one.lease)
        for one in finishes
    ]


def _record(tx: Transaction, finishes: list[Finish]) -> list[Finished | LeaseLost]:
    kept = tx.finish([_finish_row(one) for one in finishes])
    recorded = list(compress(finishes, kept))
    tx.notify(*[one.claim.id for one in recorded])
    _insert_artifacts(tx, recorded)
    builds = [
        JobRef(one.claim.workspace_id, one.claim.id) for one in recorded if one.claim.kind == BUILD
    ]
    if builds:
        transitions.settle_builds(tx, builds)
    return [
        _FINISHED[one.outcome.status] if is_kept and one.outcome else lease_lost(one.lease)
        for one, is_kept in zip(finishes, kept, strict=True)
    ]


def _insert_artifacts(tx: Transaction, finishes: list[Finish]) -> None:
    """Insert the files that the results name, in place of those of an earlier end of the job."""
    again = [JobRef(claim.workspace_id, claim.id) for claim, _, _ in finishes if claim.fence > 1]
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
        for claim, outcome, _ in finishes
        if outcome is not None and outcome.artifacts
        for file in outcome.artifacts
    ]
    if new:
        tx.insert_artifacts(new)


def _may_go_back(finish: Finish) -> bool:
    """Tell whether the job must be read to know where it goes.

    That holds for a paused attempt too: its worker may not know that the job was then cancelled.
    """
    claim, outcome, _ = finish
    if outcome is None or outcome.status is Status.PAUSED:
        return True
    error = outcome.error
    return (
        error is not None
        and outcome.status is Status.FAILED
        and tries_again(error.category, claim.retries_left)
    )


def _finish_row(finish: Finish) -> FinishRow:
    """Describe the end of an attempt from its claim, without reading the job."""
    claim, outcome, _ = finish
    assert outcome is not None
    status, error, fence = outcome.status, outcome.error, claim.fence
    if status not in _WORDS:
        raise ValueError(f"an attempt cannot end as {status.value}")
    return _as_finish_row(
        (
            claim.workspace_id,
            claim.id,
            fence,
            _WORDS[status],
            1 if claim.target_id is not None and status in BLOCKS_ITS_LANE else 0,
            json_text(outcome.usage) if outcome.usage else None,
            json_text(outcome.isolation) if outcome.isolation else None,
            None if error is None else json_text(error.as_dict()),
            None if outcome.result is None else json_text(outcome.result),
            f'{{"attempt": {fence}{_EVENT_ENDS[status]}'
            if error is None
            else _failure_data(fence, status, error),
            claim.address,
            None if outcome.evaluation is None else outcome.evaluation.value,
            None if outcome.counts is None else json_text(outcome.counts),
        )
    )


# Makes the tuple without running Python code for each of a million ends.
_as_finish_row = partial(tuple.__new__, FinishRow)


def _failure_data(attempt: int, status: Status, error: JobError) -> str:
    """Record what went wrong without the message, which may hold a user's values."""
    what = {"category": error.category.value, "code": error.code}
    return json.dumps({"attempt": attempt, "cause": _CAUSES[status], "error": what})


def _requeue(tx: Transaction, finishes: list[Finish]) -> dict[LeaseRef, Finished]:
    """Requeue jobs that were handed back or failed through no fault of their own."""
    rows = tx.lock_jobs([JobRef(one.claim.workspace_id, one.claim.id) for one in finishes])
    current = {LeaseRef(row.workspace_id, row.id, row.fence): row for row in rows}
    held = [f for f in finishes if (row := current.get(f.lease)) and row.status == Status.RUNNING]
    moves = [_requeue_or_stop(current[one.lease], one.outcome, tx.now_us) for one in held]
    moved = transitions.apply(tx, moves)
    transitions.notify_claimers(tx, moves, rows)
    statuses = {(move.workspace_id, move.id): move.status for move in moves}
    # What a stopped attempt left is kept; one that goes back into the queue begins anew.
    stopped = [one for one in held if statuses[one.lease[:2]] != Status.QUEUED]
    if stopped:
        _insert_artifacts(tx, stopped)
    return {
        LeaseRef(*row[:3]): Finished(Status(statuses[row.workspace_id, row.id])) for row in moved
    }


def _requeue_or_stop(job: JobRow, outcome: Outcome | None, now_us: int) -> Move:
    if job.stop_request is not None:
        stopped = STOPPED_STATUS[StopRequest(job.stop_request)]
        return transitions.move(job, stopped, Cause.STOPPED, now_us, outcome=outcome)
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
