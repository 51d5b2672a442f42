"""Accept jobs: replay, deduplicate, admit, place, insert; one transaction for a whole group.

The steps run in this order because each one spares the next: a repeated request needs no job, a
duplicate needs no place in the queue, and a refused job leaves no row.
"""

import json
from collections.abc import Iterator, Sequence

from ade.clock import Clock, new_ids
from ade.domain.agent_pool import AgentPool
from ade.domain.build import KIND as BUILD
from ade.domain.build import BuildStatus
from ade.domain.errors import SAFE_MODE_DETAIL, SafeMode
from ade.domain.events import work_topic
from ade.domain.job import LOCAL_POOL, Cause, Status
from ade.domain.order import build_rank, rank
from ade.stages.builds import EnsuredBuild, RequiredBuild, ensure, job_of
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit import admit, dedupe, idempotency, place
from ade.stages.submit.model import Accepted, Answer, Submission
from ade.stages.transitions import checked_cause, fail_runs
from ade.store.port import Transaction
from ade.store.rows import AgentJobRow, Build, JobRef, JobRow


def submit(
    settings: KernelSettings, clock: Clock, tx: Transaction, submissions: list[Submission]
) -> list[Answer]:
    """Accept or refuse submissions in the order in which they came."""
    if settings.safe_mode:
        return [SafeMode(SAFE_MODE_DETAIL) for _ in submissions]
    answers: dict[int, Answer] = {}
    repeated = idempotency.replay(settings, tx, submissions, answers)
    replayed = set(answers)
    # The ids ascend: of submissions with equal rank, the one that came first goes first.
    ids = new_ids(clock, len(submissions))
    registered = dedupe.register(tx, submissions, ids, answers, repeated)
    duplicates = registered.duplicates
    new = [
        i for i in range(len(submissions)) if not (i in answers or i in duplicates or i in repeated)
    ]
    admitted = admit.admit(settings, tx, submissions, new, answers)
    dedupe.settle(tx, registered, new, admitted)
    if with_builds := {
        i: (ids[i], submissions[i]) for i in admitted if submissions[i].required is not None
    }:
        answers |= _accept_with_builds(settings, clock, tx, with_builds)
        admitted = [i for i in admitted if i not in with_builds]
    inserted = _insert(settings, tx, [ids[i] for i in admitted], [submissions[i] for i in admitted])
    for index, job in zip(admitted, inserted, strict=True):
        answers[index] = Accepted(job)
    for index, first in duplicates.items():
        answers[index] = dedupe.answer_duplicate(answers[first])
    idempotency.remember(tx, submissions, answers, repeated, replayed)
    return [answers[i] for i in range(len(submissions))]


def _accept_with_builds(
    settings: KernelSettings,
    clock: Clock,
    tx: Transaction,
    admitted: dict[int, tuple[str, Submission]],
) -> dict[int, Accepted]:
    """Find or make what runs and activations need, with the jobs of builds, then insert runs.

    A thousand runs of one version that come together look for its build once.
    """
    known: dict[RequiredBuild, EnsuredBuild] = {}
    accepted: dict[int, Accepted] = {}
    runs: dict[int, tuple[str, Submission]] = {}
    for index, (job_id, submission) in admitted.items():
        ensured = known.get(_required(submission))
        if ensured is None:
            ensured = _ensure(settings, clock, tx, submission)
            known[_required(submission)] = ensured._replace(new_job=None)
        if submission.kind == BUILD:
            job = job_of(tx, ensured.build)
            assert job is not None
            accepted[index] = Accepted(job, ensured.new_job is None, ensured=ensured)
        else:
            runs[index] = job_id, _with_build(submission, ensured)
    rows = _insert(settings, tx, [i for i, _ in runs.values()], [run for _, run in runs.values()])
    for index, row in zip(runs, rows, strict=True):
        ensured = known[_required(admitted[index][1])]
        accepted[index] = Accepted(_failed_at_once(tx, row, ensured.build), ensured=ensured)
    return accepted


def _failed_at_once(tx: Transaction, run: JobRow, build: Build) -> JobRow:
    """Fail a run whose build is known to fail, and return it as it is then.

    One that starts later is left: its build may be made again before its time has come.
    """
    if build.status != BuildStatus.FAILED or run.status != Status.QUEUED:
        return run
    fail_runs(tx, build, [run])
    return tx.read_job(JobRef(run.workspace_id, run.id)) or run


def _required(submission: Submission) -> RequiredBuild:
    assert submission.required is not None
    return submission.required


def _ensure(
    settings: KernelSettings, clock: Clock, tx: Transaction, submission: Submission
) -> EnsuredBuild:
    """Find or make what a submission depends on, and insert the job that makes its build."""
    required = _required(submission)
    build_id, job_id = new_ids(clock, 2)
    ensured = ensure(tx, required, build_id, job_id, submission.submitted_by)
    if ensured.new_job is not None:
        build = ensured.build
        inputs = {"build_id": build.id, "config_version_id": ensured.version.id}
        work = Submission(
            workspace_id=submission.workspace_id,
            kind=BUILD,
            payload=json.dumps({"job_type": BUILD, "inputs": inputs}),
            limits=required.limits,
            submitted_by=submission.submitted_by,
            configuration_id=build.configuration_id,
            retries=required.retries,
        )
        _insert(settings, tx, [ensured.new_job], [work])
    return ensured


def _with_build(submission: Submission, ensured: EnsuredBuild) -> Submission:
    """Name in a run's payload what it depends on."""
    payload = json.loads(submission.payload)
    version, build = ensured.version, ensured.build
    payload["inputs"] |= {"config_version_id": version.id, "build_id": build.id}
    return submission._replace(payload=json.dumps(payload), build_id=build.id)


def _insert(
    settings: KernelSettings, tx: Transaction, ids: list[str], submissions: list[Submission]
) -> list[JobRow]:
    if not submissions:
        return []
    placements = place.place(tx, submissions)
    rows = list(_rows(settings, tx.now_us, ids, submissions, placements))
    payloads = [submission.payload for submission in submissions]
    for first_events, some in _by_first_event(rows):
        tx.insert_jobs([rows[i] for i in some], [payloads[i] for i in some], first_events)
    _insert_agent_jobs(tx, rows, submissions)
    for pool in {row.pool for row in rows if row.eligible}:
        tx.notify(work_topic(pool))
    for row in rows:
        if row.not_before is not None:
            tx.notify(row.id)
    return rows


def _insert_agent_jobs(tx: Transaction, rows: list[JobRow], submissions: list[Submission]) -> None:
    """Insert what the worker contract knows of new jobs that agents run."""
    for row, submission in zip(rows, submissions, strict=True):
        if row.pool != LOCAL_POOL:
            known = (row.id, row.workspace_id, submission.job_name, row.pool, "{}", tx.now_us)
            tx.agent_jobs.insert(AgentJobRow(*known), submission.agent_pool or AgentPool())


def _by_first_event(rows: list[JobRow]) -> Iterator[tuple[dict[str, str], Sequence[int]]]:
    """Group new jobs by what their first events record: mostly the same for all of them."""
    if all(row.eligible or row.status == _PENDING for row in rows):
        yield _FIRST_EVENTS, range(len(rows))
        return
    groups: dict[str | None, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(_waits_for(row), []).append(index)
    for waits_for, some in groups.items():
        yield _FIRST_EVENTS if waits_for is None else {_QUEUED: waits_for}, some


def _waits_for(row: JobRow) -> str | None:
    """Say what a new job waits for besides a worker, as its first event records it."""
    if row.eligible or row.status == _PENDING:
        return None
    accepted = {"cause": checked_cause(None, Status.QUEUED, Cause.ACCEPTED)}
    if row.build_id is None:
        return json.dumps(accepted | {"reason": "lane"})
    return json.dumps(accepted | {"reason": "build", "build_id": row.build_id})


def _rows(
    settings: KernelSettings,
    now_us: int,
    ids: list[str],
    submissions: list[Submission],
    placements: list[place.Placement],
) -> Iterator[JobRow]:
    """Make the rows of new jobs; in a batch, a row is copied from the one before it.

    Neighbours in a batch mostly differ in payload and execution key only. Copying a tuple takes
    about a third of the time that `_row` takes.
    """
    common, row = None, None
    for job_id, submission, placement in zip(ids, submissions, placements, strict=True):
        rest = (
            placement,
            submission[:_PAYLOAD],
            submission[_PAYLOAD + 1 : _KEY],
            submission[_KEY + 1 : _IDEMPOTENCY],
        )
        if row is None or rest != common:
            common, row = rest, _row(settings, now_us, job_id, submission, placement)
        else:
            own = (submission.workspace_id, job_id, *row[2:_KEY_OF_ROW], submission.execution_key)
            row = JobRow._make(own + row[_KEY_OF_ROW + 1 :])
        yield row


_PAYLOAD, _KEY, _IDEMPOTENCY = map(
    Submission._fields.index, ("payload", "execution_key", "idempotency")
)
_KEY_OF_ROW = JobRow._fields.index("execution_key")
_PENDING, _QUEUED = Status.PENDING.value, Status.QUEUED.value
# What the first event of a new job records, by the status in which the job begins.
_FIRST_EVENTS = {
    status.value: json.dumps({"cause": checked_cause(None, status, cause)})
    for status, cause in ((Status.PENDING, Cause.SCHEDULED), (Status.QUEUED, Cause.ACCEPTED))
}


def _row(
    settings: KernelSettings,
    now_us: int,
    job_id: str,
    submission: Submission,
    placement: place.Placement,
) -> JobRow:
    asked = submission.agent_pool
    return JobRow(
        workspace_id=submission.workspace_id,
        id=job_id,
        kind=submission.kind,
        pool=submission.pool if asked is None else asked.name,
        status=_PENDING if placement.in_future else _QUEUED,
        eligible=1 if placement.eligible else 0,
        priority=submission.priority.value,
        rank=build_rank(now_us)
        if submission.kind == BUILD
        else rank(submission.priority, now_us, settings.ageing_seconds),
        target_id=submission.target_id,
        holds_lane=1 if placement.eligible and submission.target_id is not None else 0,
        not_before=submission.not_before if placement.in_future else None,
        execution_key=submission.execution_key,
        rerun_of=submission.rerun_of,
        configuration_id=submission.configuration_id,
        document_id=submission.document_id,
        build_id=submission.build_id,
        fence=0,
        retries_left=submission.retries,
        lease_owner=None,
        lease_expires_at=None,
        stop_request=None,
        event_seq=1,
        submitted_by=submission.submitted_by,
        submitted_at=now_us,
        started_at=None,
        finished_at=None,
        timeout_ms=submission.limits.timeout_ms,
        limits=submission.limits.as_json(),
        progress=None,
        usage=None,
        isolation=None,
        error=None,
    )
