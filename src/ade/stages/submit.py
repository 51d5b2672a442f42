"""Accept jobs: replay, join, admit, place, insert; one transaction for all that came together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ade.clock import Clock, new_id
from ade.domain.errors import AdeError, SafeMode
from ade.domain.job import Priority
from ade.domain.limits import Limits
from ade.domain.order import rank
from ade.stages import admit, dedupe, idempotency, place
from ade.stages.rules import LOCAL, Rules, job_topic, work_topic
from ade.store.port import Transaction
from ade.store.rows import JobRow, NewJob

SAFE_MODE_DETAIL = (
    "ADE_SAFE_MODE is enabled: nothing is run until it is switched off."
    " Fix the configuration, then restart ADE without it."
)


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Hold the name that a client gave its request, and how to spell the answer to it.

    `answer` is None for a request that waits for its job: its answer is recorded when it is made.
    """

    principal: str
    endpoint: str
    key: str
    body_digest: str
    answer: Callable[["Accepted"], tuple[int, str]] | None


class Submission(NamedTuple):
    """Hold a job that someone asks for."""

    workspace_id: str
    kind: str
    payload: str
    limits: Limits
    submitted_by: str
    pool: str = LOCAL
    priority: Priority = Priority.NORMAL
    target_id: str | None = None
    not_before: int | None = None
    execution_key: str | None = None
    dedupe: bool = True
    reuse_failed: bool = False
    rerun_of: str | None = None
    configuration_id: str | None = None
    document_id: str | None = None
    build_id: str | None = None
    retries: int = 2
    idempotency: Idempotency | None = None


class Accepted(NamedTuple):
    """Say which job stands for a submission, and how it came to."""

    job: JobRow
    deduplicated: bool = False
    replayed: tuple[int, str] | None = None


Outcome = Accepted | AdeError


def submit(rules: Rules, clock: Clock, tx: Transaction, asked: list[Submission]) -> list[Outcome]:
    """Accept or refuse submissions in the order in which they came."""
    if rules.safe_mode:
        return [SafeMode(SAFE_MODE_DETAIL) for _ in asked]
    outcomes: dict[int, Outcome] = {}
    repeated = idempotency.replay(rules, tx, asked, outcomes)
    answered = set(outcomes)
    twins, replaced = dedupe.join(tx, asked, outcomes, repeated)
    new = [i for i in range(len(asked)) if not (i in outcomes or i in twins or i in repeated)]
    admitted = admit.admit(rules, tx, asked, new, outcomes)
    dedupe.forget(tx, replaced, admitted)
    inserted = _insert(rules, clock, tx, [asked[i] for i in admitted])
    for index, job in zip(admitted, inserted, strict=True):
        outcomes[index] = Accepted(job.as_row())
    for index, first in twins.items():
        outcomes[index] = dedupe.joined(outcomes[first])
    idempotency.remember(tx, asked, outcomes, repeated, answered)
    return [outcomes[i] for i in range(len(asked))]


def _insert(rules: Rules, clock: Clock, tx: Transaction, asked: list[Submission]) -> list[NewJob]:
    if not asked:
        return []
    places = place.place(tx, asked)
    # Sorted: of those that came together and have one rank, the first goes first.
    ids = sorted(new_id(clock) for _ in asked)
    new = [
        _new_job(rules, job_id, tx.now_us, ask, where)
        for job_id, ask, where in zip(ids, asked, places, strict=True)
    ]
    tx.insert_jobs(new)
    for pool in {job.pool for job in new if job.eligible}:
        tx.wake(work_topic(pool))
    for job in new:
        if job.not_before is not None:
            tx.wake(job_topic(job.id))
    return new


def _new_job(rules: Rules, job_id: str, now_us: int, ask: Submission, where: place.Place) -> NewJob:
    status = "pending" if where.in_future else "queued"
    return NewJob(  # by position: this runs for every job
        ask.workspace_id,
        job_id,
        ask.kind,
        ask.pool,
        status,
        1 if where.eligible else 0,
        ask.priority.value,
        rank(ask.priority, now_us, rules.ageing_seconds),
        ask.target_id,
        1 if where.eligible and ask.target_id is not None else 0,
        ask.not_before if where.in_future else None,
        ask.execution_key,
        ask.rerun_of,
        ask.configuration_id,
        ask.document_id,
        ask.build_id,
        ask.retries,
        ask.submitted_by,
        now_us,
        ask.limits.timeout_ms,
        ask.limits.as_json(),
        ask.payload,
        1 if dedupe.registers(ask) else 0,
        f"job.{status}",
        "{}",
    )
