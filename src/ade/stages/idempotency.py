"""A client that lost our answer asks again and gets the same one (seed 003, 5.3).

The answer is remembered in the transaction that creates the job, so there is no moment in which a
crash leaves a job without its answer. Only a request that waits for its job to end has an answer
that comes later; until then its repetition is told to be patient.

    the key was used                          what the repetition gets
    ----------------------------------------  -------------------------------------------------
    never, or longer ago than a day           a new job
    with the same body, and was answered      the same answer, marked as replayed
    with the same body, answer being made     409 idempotency_in_flight
    with another body                         422 idempotency_key_reused
    and the answer was a refusal              a new try: a refusal leaves no trace
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ade.domain.errors import AdeError, IdempotencyInFlight, IdempotencyKeyReused
from ade.domain.job import TERMINAL, Status
from ade.domain.lease import MICROSECONDS
from ade.stages.rules import Rules
from ade.store.port import Transaction
from ade.store.rows import IdempotencyRef, IdempotencyRow, JobRef

if TYPE_CHECKING:
    from ade.stages.submit import Idempotency, Outcome, Submission


def _ref(ask: Submission, idempotency: Idempotency) -> IdempotencyRef:
    return IdempotencyRef(
        ask.workspace_id, idempotency.principal, idempotency.endpoint, idempotency.key
    )


def replay(
    rules: Rules, tx: Transaction, asked: list[Submission], outcomes: dict[int, Outcome]
) -> set[int]:
    """Answer repetitions of earlier requests; return those that repeat one of this very group."""
    seen: set[IdempotencyRef] = set()
    repeated: set[int] = set()
    oldest = tx.now_us - int(rules.idempotency_ttl_seconds * MICROSECONDS)
    for index, ask in enumerate(asked):
        if ask.idempotency is None:
            continue
        ref = _ref(ask, ask.idempotency)
        if ref in seen:
            repeated.add(index)
            continue
        seen.add(ref)
        earlier = tx.find_idempotency(ref)
        if earlier is not None and earlier.created_at >= oldest:
            outcomes[index] = _again(tx, ask, earlier)
        elif earlier is not None:
            tx.delete_idempotency(oldest)
    return repeated


def _again(tx: Transaction, ask: Submission, earlier: IdempotencyRow) -> Outcome:
    from ade.stages.submit import Accepted

    if ask.idempotency is None or ask.idempotency.body_digest != earlier.body_digest:
        return IdempotencyKeyReused("This Idempotency-Key was used with another request body.")
    job = tx.read_job(JobRef(earlier.workspace_id, earlier.job_id or ""))
    if job is None:
        return IdempotencyKeyReused("The job that this Idempotency-Key made was deleted.")
    if earlier.response_status is not None:
        return Accepted(job, replayed=(earlier.response_status, earlier.response_body or ""))
    if Status(job.status) in TERMINAL:
        return Accepted(job)  # the server that was to answer died; the job tells
    return IdempotencyInFlight(
        "The first request with this Idempotency-Key still waits for its job; try again shortly."
    )


def remember(
    tx: Transaction,
    asked: list[Submission],
    outcomes: dict[int, Outcome],
    repeated: set[int],
    answered: set[int],
) -> None:
    """Record the answers to first requests, then answer those that repeat them.

    Those answered from a record have one. A record that came up meanwhile is another process's:
    inserting violates its key, and the whole submission runs again and finds it.
    """
    for index, ask in enumerate(asked):
        outcome = outcomes.get(index)
        if ask.idempotency is None or index in repeated or index in answered:
            continue
        if outcome is not None and not isinstance(outcome, AdeError):
            tx.insert_idempotency(_row(tx, ask, ask.idempotency, outcome))
    for index in sorted(repeated):
        ask = asked[index]
        assert ask.idempotency is not None
        earlier = tx.find_idempotency(_ref(ask, ask.idempotency))
        # No record: the first one was refused, and so is its repetition in the same moment.
        outcomes[index] = _again(tx, ask, earlier) if earlier else _refusal(asked, outcomes, index)


def answer(rules: Rules, tx: Transaction, given: list[IdempotencyRow]) -> list[None]:
    """Record answers that came later, because their requests waited for their jobs."""
    for row in given:
        tx.answer_idempotency(row)
    return [None for _ in given]


def _refusal(asked: list[Submission], outcomes: dict[int, Outcome], index: int) -> Outcome:
    ask = asked[index]
    assert ask.idempotency is not None
    return next(
        outcomes[i]
        for i, other in enumerate(asked)
        if other.idempotency is not None
        and _ref(other, other.idempotency) == _ref(ask, ask.idempotency)
    )


def _row(
    tx: Transaction, ask: Submission, idempotency: Idempotency, outcome: Outcome
) -> IdempotencyRow:
    assert not isinstance(outcome, AdeError)
    status, body = idempotency.answer(outcome) if idempotency.answer else (None, None)
    return IdempotencyRow(
        *_ref(ask, idempotency), idempotency.body_digest, status, body, outcome.job.id, tx.now_us
    )
