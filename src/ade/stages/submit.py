"""Accept jobs: replay, join, admit, place, insert; one transaction for all that came together."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ade.clock import Clock, new_ids
from ade.domain.errors import AdeError, SafeMode
from ade.domain.job import Cause, Priority, Status
from ade.domain.limits import Limits
from ade.domain.order import rank
from ade.stages import admit, dedupe, idempotency, place
from ade.stages.rules import LOCAL, Rules, work_topic
from ade.stages.transitions import checked_cause
from ade.store.port import Transaction
from ade.store.rows import JobRow

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
    # In order: of those that came together and have one rank, the first goes first.
    ids = new_ids(clock, len(asked))
    joined = dedupe.join(tx, asked, ids, outcomes, repeated)
    twins = joined.twins
    new = [i for i in range(len(asked)) if not (i in outcomes or i in twins or i in repeated)]
    admitted = admit.admit(rules, tx, asked, new, outcomes)
    dedupe.settle(tx, joined, new, admitted)
    inserted = _insert(rules, tx, [ids[i] for i in admitted], [asked[i] for i in admitted])
    for index, job in zip(admitted, inserted, strict=True):
        outcomes[index] = Accepted(job)
    for index, first in twins.items():
        outcomes[index] = dedupe.joined(outcomes[first])
    idempotency.remember(tx, asked, outcomes, repeated, answered)
    return [outcomes[i] for i in range(len(asked))]


def _insert(rules: Rules, tx: Transaction, ids: list[str], asked: list[Submission]) -> list[JobRow]:
    if not asked:
        return []
    rows = list(_rows(rules, tx.now_us, ids, asked, place.place(tx, asked)))
    tx.insert_jobs(rows, [ask.payload for ask in asked], _FIRST_EVENTS)
    for pool in {row.pool for row in rows if row.eligible}:
        tx.notify(work_topic(pool))
    for row in rows:
        if row.not_before is not None:
            tx.notify(row.id)
    return rows


def _rows(
    rules: Rules, now_us: int, ids: list[str], asked: list[Submission], places: list[place.Place]
) -> Iterator[JobRow]:
    """Make the rows of new jobs; those that follow each other differ in little."""
    alike, row = None, None
    for job_id, ask, where in zip(ids, asked, places, strict=True):
        rest = (where, ask[:_PAYLOAD], ask[_PAYLOAD + 1 : _KEY], ask[_KEY + 1 : _IDEMPOTENCY])
        if row is None or rest != alike:
            alike, row = rest, _row(rules, now_us, job_id, ask, where)
        else:
            own = (ask.workspace_id, job_id, *row[2:_KEY_OF_ROW], ask.execution_key)
            row = JobRow._make(own + row[_KEY_OF_ROW + 1 :])
        yield row


_PENDING, _QUEUED = Status.PENDING.value, Status.QUEUED.value
# What the first event of a new job records, by the status in which the job begins.
_FIRST_EVENTS = {
    status.value: json.dumps({"cause": checked_cause(None, status, cause)})
    for status, cause in ((Status.PENDING, Cause.SCHEDULED), (Status.QUEUED, Cause.ACCEPTED))
}
_PAYLOAD, _KEY, _IDEMPOTENCY = map(
    Submission._fields.index, ("payload", "execution_key", "idempotency")
)
_KEY_OF_ROW = JobRow._fields.index("execution_key")


def _row(rules: Rules, now_us: int, job_id: str, ask: Submission, where: place.Place) -> JobRow:
    return JobRow(
        workspace_id=ask.workspace_id,
        id=job_id,
        kind=ask.kind,
        pool=ask.pool,
        status=_PENDING if where.in_future else _QUEUED,
        eligible=1 if where.eligible else 0,
        priority=ask.priority.value,
        rank=rank(ask.priority, now_us, rules.ageing_seconds),
        target_id=ask.target_id,
        holds_lane=1 if where.eligible and ask.target_id is not None else 0,
        not_before=ask.not_before if where.in_future else None,
        execution_key=ask.execution_key,
        rerun_of=ask.rerun_of,
        configuration_id=ask.configuration_id,
        document_id=ask.document_id,
        build_id=ask.build_id,
        fence=0,
        retries_left=ask.retries,
        lease_owner=None,
        lease_expires_at=None,
        stop_request=None,
        event_seq=1,
        submitted_by=ask.submitted_by,
        submitted_at=now_us,
        started_at=None,
        finished_at=None,
        timeout_ms=ask.limits.timeout_ms,
        limits=ask.limits.as_json(),
        progress=None,
        usage=None,
        isolation=None,
        error=None,
    )
