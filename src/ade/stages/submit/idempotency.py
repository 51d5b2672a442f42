"""Give a client that lost our response the same one again.

The response is recorded in the transaction that creates the job, so a crash never leaves a job
without its response. Only a request that waits for its job gets its response later; until then a
repetition gets an error that asks to try again.

    the key was used                          what the repetition gets
    ----------------------------------------  -------------------------------------------------
    never, or longer ago than a day           a new job
    with the same body, and was answered      the same response, marked as replayed
    with the same body, and is in flight      409 idempotency_in_flight
    with another body                         422 idempotency_key_reused
    and the request was refused               a new try: a refusal records nothing
"""

from ade.domain.errors import AdeError, IdempotencyInFlight, IdempotencyKeyReused
from ade.domain.job import TERMINAL, Status
from ade.domain.units import MICROSECONDS
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Accepted, Answer, Idempotency, Submission
from ade.store.port import Transaction
from ade.store.rows import IdempotencyRef, IdempotencyRow, JobRef


def _ref(submission: Submission, idempotency: Idempotency) -> IdempotencyRef:
    return IdempotencyRef(
        submission.workspace_id, idempotency.principal, idempotency.endpoint, idempotency.key
    )


def replay(
    settings: KernelSettings,
    tx: Transaction,
    submissions: list[Submission],
    answers: dict[int, Answer],
) -> set[int]:
    """Answer repetitions of earlier requests; return those that repeat one of the same group."""
    seen: set[IdempotencyRef] = set()
    repeated: set[int] = set()
    oldest = tx.now_us - int(settings.idempotency_ttl_seconds * MICROSECONDS)
    for index, submission in enumerate(submissions):
        if submission.idempotency is None:
            continue
        ref = _ref(submission, submission.idempotency)
        if ref in seen:
            repeated.add(index)
            continue
        seen.add(ref)
        earlier = tx.find_idempotency(ref)
        if earlier is not None and earlier.created_at >= oldest:
            answers[index] = _answer_again(tx, submission, earlier)
        elif earlier is not None:
            tx.delete_idempotency(oldest)
    return repeated


def _answer_again(tx: Transaction, submission: Submission, earlier: IdempotencyRow) -> Answer:
    idempotency = submission.idempotency
    if idempotency is None or idempotency.body_digest != earlier.body_digest:
        return IdempotencyKeyReused("This Idempotency-Key was used with another request body.")
    job = tx.read_job(JobRef(earlier.workspace_id, earlier.job_id or ""))
    if job is None:
        return IdempotencyKeyReused("The job that this Idempotency-Key made was deleted.")
    if earlier.response_status is not None:
        return Accepted(job, replayed=(earlier.response_status, earlier.response_body or ""))
    if Status(job.status) in TERMINAL:
        return Accepted(job)  # the server that was to respond died; the job has the result
    return IdempotencyInFlight(
        "The first request with this Idempotency-Key still waits for its job; try again shortly."
    )


def remember(
    tx: Transaction,
    submissions: list[Submission],
    answers: dict[int, Answer],
    repeated: set[int],
    replayed: set[int],
) -> None:
    """Record the responses to first requests, then answer those that repeat them.

    The `replayed` ones have a record. A record that appeared meanwhile is another process's:
    inserting ours violates its key, and the whole submission runs again and finds it.
    """
    for index, submission in enumerate(submissions):
        answer = answers.get(index)
        if submission.idempotency is None or index in repeated or index in replayed:
            continue
        if answer is not None and not isinstance(answer, AdeError):
            tx.insert_idempotency(_row(tx, submission, submission.idempotency, answer))
    for index in sorted(repeated):
        submission = submissions[index]
        assert submission.idempotency is not None
        earlier = tx.find_idempotency(_ref(submission, submission.idempotency))
        # No record: the first one was refused, and so is its repetition in the same group.
        answers[index] = (
            _answer_again(tx, submission, earlier)
            if earlier
            else _answer_of_first(submissions, answers, index)
        )


def record_response(
    settings: KernelSettings, tx: Transaction, rows: list[IdempotencyRow]
) -> list[None]:
    """Record responses that were made later, because their requests waited for their jobs."""
    for row in rows:
        tx.answer_idempotency(row)
    return [None for _ in rows]


def _answer_of_first(
    submissions: list[Submission], answers: dict[int, Answer], index: int
) -> Answer:
    submission = submissions[index]
    assert submission.idempotency is not None
    ref = _ref(submission, submission.idempotency)
    return next(
        answers[i]
        for i, other in enumerate(submissions)
        if other.idempotency is not None and _ref(other, other.idempotency) == ref
    )


def _row(
    tx: Transaction, submission: Submission, idempotency: Idempotency, accepted: Accepted
) -> IdempotencyRow:
    status, body = idempotency.answer(accepted) if idempotency.answer else (None, None)
    ref = _ref(submission, idempotency)
    return IdempotencyRow(*ref, idempotency.body_digest, status, body, accepted.job.id, tx.now_us)
