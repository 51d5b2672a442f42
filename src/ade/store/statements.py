"""Every statement on jobs and their logs, each a named function that says what it is for.

A statement that changes a job's state carries its precondition in its WHERE: the status that was
seen and, where a lease is involved, the fence. No row changed means that someone else was first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Insert,
    Select,
    String,
    Table,
    Update,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.store import rows
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import (
    builds,
    events,
    executions,
    gates,
    holds_its_lane,
    idempotency_keys,
    is_eligible,
    is_held,
    is_queued,
    is_running,
    jobs,
    requests,
)

JOB_COLUMNS = [jobs.c[name] if name in jobs.c else requests.c[name] for name in rows.JobRow._fields]
_REQUEST_VALUES = [name for name in rows.NewJob._fields if name in requests.c]
_JOB_VALUES = [name for name in rows.NewJob._fields if name in jobs.c]
_MOVED = [jobs.c[name] for name in rows.Moved._fields]
_AT_BIRTH = {"fence": 0, "event_seq": 1}


def same_row() -> ColumnElement[bool]:
    """Match the two halves of a job."""
    return and_(requests.c.workspace_id == jobs.c.workspace_id, requests.c.id == jobs.c.id)


def whole_jobs() -> Select[Any]:
    """Read jobs, both halves."""
    return select(*JOB_COLUMNS).select_from(jobs.join(requests, same_row()))


def _next_line(job: FromClause, *parts: ColumnElement[Any]) -> ColumnElement[str]:
    """Write a line into a job's own log, at the place that the same statement takes."""
    line = job.c.history + cast(job.c.event_seq + literal_column("1"), String)
    for part in parts:
        line = line + part
    return line


def _same_job(job: FromClause, g: Given) -> ColumnElement[bool]:
    return and_(job.c.workspace_id == g["workspace_id"], job.c.id == g["id"])


def _holds_lease(job: FromClause, g: Given) -> ColumnElement[bool]:
    """Match the job of whoever presents its current fence.

    The status is compared with a parameter, not with a constant: a constant would let PostgreSQL
    walk the index of running jobs once for each row given, instead of looking each row up.
    """
    return and_(_same_job(job, g), job.c.fence == g["fence"], job.c.status == literal("running"))


def _same_lane(job: FromClause, g: Given) -> ColumnElement[bool]:
    return and_(job.c.workspace_id == g["workspace_id"], job.c.target_id == g["target_id"])


def insert_values(
    table: Table,
    values: Mapping[str, ColumnElement[Any]],
    *,
    when: ColumnElement[bool] | None = None,
) -> Insert:
    """Insert what is given, one row or many."""
    source = select(*[value.label(name) for name, value in values.items()])
    return insert(table).from_select(list(values), source if when is None else source.where(when))


# --- submit -------------------------------------------------------------------------------------


def insert_requests(d: Dialect, g: Given) -> Insert:
    """Insert what is asked of new jobs."""
    return insert_values(requests, {name: g[name] for name in _REQUEST_VALUES})


def insert_jobs(d: Dialect, g: Given) -> Insert:
    """Insert where new jobs are, with the first lines of their logs."""
    born: dict[str, ColumnElement[Any]] = {
        name: literal_column(str(value)) for name, value in _AT_BIRTH.items()
    }
    values = {name: g[name] for name in (*_JOB_VALUES, "history")}
    return insert_values(jobs, values | born)


def register_executions(d: Dialect, g: Given) -> Insert:
    """Let new jobs stand for their execution keys; a twin that was first violates the key."""
    return insert_values(
        executions,
        {
            "workspace_id": g["workspace_id"],
            "execution_key": g["execution_key"],
            "job_id": g["id"],
        },
        when=g["registers"] == literal_column("1"),
    )


def find_executions(d: Dialect, g: Given) -> Executable:
    """Find which jobs of a workspace stand for pieces of work."""
    return select(executions.c.workspace_id, executions.c.job_id).where(
        executions.c.workspace_id == g["workspace_id"],
        d.one_of(executions.c.execution_key, "execution_keys"),
    )


def read_jobs(d: Dialect, g: Given) -> Select[Any]:
    """Read jobs."""
    return whole_jobs().where(_same_job(jobs, g))


def forget_executions(d: Dialect, g: Given) -> Executable:
    """Take from a job that it stands for a piece of work."""
    return delete(executions).where(
        executions.c.workspace_id == g["workspace_id"],
        executions.c.execution_key == g["execution_key"],
        executions.c.job_id == g["job_id"],
    )


def find_idempotency(d: Dialect, g: Given) -> Executable:
    """Find what was answered to requests of these keys."""
    same = [idempotency_keys.c[name] == g[name] for name in rows.IdempotencyRef._fields]
    return select(*[idempotency_keys.c[name] for name in rows.IdempotencyRow._fields]).where(*same)


def insert_idempotency(d: Dialect, g: Given) -> Insert:
    """Remember the answers to requests."""
    return insert_values(idempotency_keys, {name: g[name] for name in rows.IdempotencyRow._fields})


def answer_idempotency(d: Dialect, g: Given) -> Update:
    """Record the answer that was still being made."""
    same = [idempotency_keys.c[name] == g[name] for name in rows.IdempotencyRef._fields]
    return (
        update(idempotency_keys)
        .where(*same, idempotency_keys.c.response_status.is_(None))
        .values(response_status=g["response_status"], response_body=g["response_body"])
    )


def delete_idempotency(d: Dialect, g: Given) -> Executable:
    """Forget answers older than a day."""
    return delete(idempotency_keys).where(idempotency_keys.c.created_at < g["created_at"])


def pass_gate(d: Dialect, g: Given) -> Update:
    """Lock the gate until the end of the transaction: who counts next waits here."""
    return update(gates).where(gates.c.name == g["name"]).values(passed=gates.c.passed + 1)


def count_waiting(d: Dialect, g: Given) -> Executable:
    """Count the jobs of a pool that wait, up to a number; each is either eligible or held."""
    counts = []
    for waiting in (is_eligible(jobs), is_held(jobs)):
        some = d.limited(
            select(literal_column("1").label("one")).where(waiting, jobs.c.pool == g["pool"]),
            g["limit"],
        ).subquery()
        counts.append(select(func.count()).select_from(some).scalar_subquery())
    return select(counts[0] + counts[1])


def held_lanes(d: Dialect, g: Given) -> Executable:
    """Find which of these lanes have a holder."""
    holder = jobs.alias("holder")
    return select(g["workspace_id"].label("workspace_id"), g["target_id"].label("target_id")).where(
        exists().where(_same_lane(holder, g), holds_its_lane(holder))
    )


# --- claim --------------------------------------------------------------------------------------


def _next_eligible(d: Dialect, g: Given, job: FromClause) -> Any:
    return d.limited(
        d.locked_skipping(
            select(job.c.workspace_id, job.c.id)
            .where(
                is_eligible(job),
                job.c.pool == g["pool"],
                job.c.workspace_id == g["workspace_id"],
            )
            .order_by(job.c.rank, job.c.id),
            job,
        ),
        g["limit"],
    )


def _taken(g: Given) -> dict[str, Any]:
    """Change a job to claimed: status, fence and lease in one step, and its line in the log."""
    attempt = cast(jobs.c.fence + literal_column("1"), String)
    return {
        "status": "running",
        "eligible": literal_column("0"),
        "fence": jobs.c.fence + literal_column("1"),
        "lease_owner": g["owner"],
        "lease_expires_at": g["expires_at"],
        "started_at": g["started_at"],
        "event_seq": jobs.c.event_seq + literal_column("1"),
        "history": _next_line(jobs, g["line_before"], attempt, g["line_after"]),
    }


def claim(d: Dialect, g: Given) -> Executable:
    """Take the next eligible jobs of a workspace and return them, all in one statement."""
    waiting = jobs.alias("waiting")
    picked = _next_eligible(d, g, waiting)
    picked = picked.with_only_columns(d.address(waiting).label("address")).cte("picked")
    taken = (
        update(jobs)
        .where(d.address(jobs) == picked.c.address, jobs.c.eligible == literal(1))
        .values(**_taken(g))
        .returning(*[jobs.c[name] for name in rows.Claim._fields if name in jobs.c])
        .cte("taken")
    )
    same = and_(requests.c.workspace_id == taken.c.workspace_id, requests.c.id == taken.c.id)
    columns = [
        taken.c[name] if name in taken.c else requests.c[name] for name in rows.Claim._fields
    ]
    return select(*columns).select_from(taken.join(requests, same))


def pick(d: Dialect, g: Given) -> Executable:
    """Read the next eligible jobs of a workspace, to be taken in the same transaction."""
    columns = [jobs.c[name] if name in jobs.c else requests.c[name] for name in rows.Claim._fields]
    found: Select[Any] = _next_eligible(d, g, jobs).with_only_columns(*columns)
    return found.select_from(jobs.join(requests, same_row()))


def take(d: Dialect, g: Given) -> Update:
    """Claim the jobs that were just picked."""
    return (
        update(jobs)
        .where(
            jobs.c.workspace_id == g["workspace_id"],
            d.one_of(jobs.c.id, "ids"),
            jobs.c.eligible == literal(1),
        )
        .values(**_taken(g))
    )


# --- renew, move --------------------------------------------------------------------------------


def renew(d: Dialect, g: Given) -> Update:
    """Keep leases, and learn what was asked of their jobs."""
    return (
        update(jobs)
        .where(_holds_lease(jobs, g))
        .values(lease_expires_at=g["expires_at"])
        .returning(*[jobs.c[name] for name in rows.Renewed._fields])
    )


def move(d: Dialect, g: Given) -> Update:
    """Move jobs out of the status and fence that were seen, and empty their own logs."""
    written = (
        "status eligible holds_lane retries_left not_before started_at finished_at"
        " usage isolation error result"
    )
    return (
        update(jobs)
        .where(_same_job(jobs, g), jobs.c.fence == g["fence"], jobs.c.status == g["source"])
        .values(
            lease_owner=null(),
            lease_expires_at=null(),
            stop_request=null(),
            event_seq=jobs.c.event_seq + literal_column("1"),
            history=literal_column("''"),
            **{name: g[name] for name in written.split()},
        )
        .returning(*_MOVED)
    )


def end(d: Dialect, g: Given) -> Update:
    """Record how running attempts ended, each with its line in the log."""
    written = "status holds_lane finished_at usage isolation error result"
    return (
        update(jobs)
        .where(_holds_lease(jobs, g))
        .values(
            lease_owner=null(),
            lease_expires_at=null(),
            stop_request=null(),
            event_seq=jobs.c.event_seq + literal_column("1"),
            history=_next_line(jobs, g["line"]),
            **{name: g[name] for name in written.split()},
        )
    )


def end_telling(d: Dialect, g: Given) -> Update:
    """Record ends, and tell which were."""
    return end(d, g).returning(jobs.c.id, jobs.c.fence)


def read_histories(d: Dialect, g: Given) -> Executable:
    """Read the lines that jobs keep of their logs."""
    return select(jobs.c.workspace_id, jobs.c.id, jobs.c.history).where(_same_job(jobs, g))


def append(d: Dialect, g: Given) -> Update:
    """Reserve places in event logs for whoever holds the lease, up to the log's limit."""
    return (
        update(jobs)
        .where(
            _holds_lease(jobs, g),
            jobs.c.event_seq + g["places"] <= g["event_seq_max"],
        )
        .values(
            event_seq=jobs.c.event_seq + g["places"],
            progress=func.coalesce(g["progress"], jobs.c.progress),
        )
        .returning(*_MOVED)
    )


def request_stop(d: Dialect, g: Given) -> Update:
    """Ask running attempts to stop."""
    return (
        update(jobs)
        .where(_holds_lease(jobs, g))
        .values(stop_request=g["stop_request"], event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*_MOVED)
    )


def report_started(d: Dialect, g: Given) -> Update:
    """Record that dispatched attempts have begun."""
    return (
        update(jobs)
        .where(_holds_lease(jobs, g), jobs.c.started_at.is_(None))
        .values(started_at=g["at"], event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*_MOVED)
    )


def insert_events(d: Dialect, g: Given) -> Insert:
    """Append events whose places were reserved by an update of their job."""
    return insert_values(events, {name: g[name] for name in rows.NewEvent._fields})


def lock_jobs(d: Dialect, g: Given) -> Executable:
    """Read jobs and keep others from changing them until the end of the transaction."""
    return d.locked(read_jobs(d, g), jobs)


def lock_free_jobs(d: Dialect, g: Given) -> Executable:
    """Read and lock jobs, passing over those that others have locked."""
    return d.locked_skipping(read_jobs(d, g), jobs)


# --- lanes, timers, builds ----------------------------------------------------------------------


def promote_lanes(d: Dialect, g: Given) -> Update:
    """Make the first queued job of each lane eligible, unless the lane has a holder."""
    waiting, holder = jobs.alias("waiting"), jobs.alias("holder")
    first = d.limited(
        select(waiting.c.id)
        .where(_same_lane(waiting, g), is_queued(waiting))
        .order_by(waiting.c.rank, waiting.c.id),
        literal_column("1"),
    ).scalar_subquery()
    free = ~exists().where(_same_lane(holder, g), holds_its_lane(holder))
    heads = d.materialized(
        select(g["workspace_id"].label("workspace_id"), first.label("id")).where(free), "heads"
    )
    return (
        update(jobs)
        .where(
            jobs.c.workspace_id == heads.c.workspace_id, jobs.c.id == heads.c.id, is_queued(jobs)
        )
        .values(eligible=literal_column("1"), holds_lane=literal_column("1"))
        .returning(jobs.c.workspace_id, jobs.c.id, jobs.c.pool)
    )


def clear_lane(d: Dialect, g: Given) -> Update:
    """Take the lane from a job that ended without success."""
    return (
        update(jobs)
        .where(
            _same_job(jobs, g),
            jobs.c.fence == g["fence"],
            jobs.c.status == g["source"],
            holds_its_lane(jobs),
        )
        .values(holds_lane=literal_column("0"), event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*_MOVED)
    )


def stalled_lanes(d: Dialect, g: Given) -> Executable:
    """Find lanes with queued jobs and no holder: none, if promotion never fails."""
    waiting, holder = jobs.alias("waiting"), jobs.alias("holder")
    taken = exists().where(
        holder.c.workspace_id == waiting.c.workspace_id,
        holder.c.target_id == waiting.c.target_id,
        holds_its_lane(holder),
    )
    return d.limited(
        select(waiting.c.workspace_id, waiting.c.target_id)
        .where(is_queued(waiting), waiting.c.target_id.is_not(None), ~taken)
        .distinct(),
        g["limit"],
    )


def lane_jobs(d: Dialect, g: Given) -> Executable:
    """Read the jobs that hold a lane."""
    return whole_jobs().where(_same_lane(jobs, g), holds_its_lane(jobs)).order_by(jobs.c.rank)


def due_jobs(d: Dialect, g: Given) -> Executable:
    """Find jobs whose time has come."""
    held = (
        whole_jobs()
        .where(is_held(jobs), jobs.c.pool == g["pool"], jobs.c.not_before <= g["now"])
        .order_by(jobs.c.not_before)
    )
    return d.limited(held, g["limit"])


def jobs_of_build(d: Dialect, g: Given) -> Executable:
    """Lock jobs that wait for a build."""
    waiting = whole_jobs().where(
        requests.c.workspace_id == g["workspace_id"],
        requests.c.build_id == g["build_id"],
        is_held(jobs),
    )
    return d.locked(waiting, jobs)


def read_builds(d: Dialect, g: Given) -> Executable:
    """Read where builds are, and keep them there: a run that joins one must not miss its end."""
    same = and_(builds.c.workspace_id == g["workspace_id"], builds.c.id == g["id"])
    return d.shared(select(builds.c.id, builds.c.status).where(same), builds)


# --- expire, retain -----------------------------------------------------------------------------


def expired_jobs(d: Dialect, g: Given) -> Executable:
    """Find running jobs whose lease nobody renewed in time."""
    gone = (
        whole_jobs()
        .where(is_running(jobs), jobs.c.lease_expires_at < g["now"])
        .order_by(jobs.c.lease_expires_at)
    )
    return d.limited(gone, g["limit"])


def overdue_jobs(d: Dialect, g: Given) -> Executable:
    """Find running jobs that are over their timeout although their lease is alive."""
    late = whole_jobs().where(
        is_running(jobs), jobs.c.started_at + jobs.c.timeout_ms * literal(1000) < g["now"]
    )
    return d.limited(late, g["limit"])


def finished_jobs(d: Dialect, g: Given) -> Executable:
    """Find old finished jobs of a workspace; identifiers sort by time, so the key finds them."""
    old = (
        select(jobs.c.workspace_id, jobs.c.id, requests.c.execution_key)
        .select_from(jobs.join(requests, same_row()))
        .where(
            jobs.c.workspace_id == g["workspace_id"],
            jobs.c.id < g["id"],
            jobs.c.finished_at < g["finished_at"],
            ~holds_its_lane(jobs),
        )
        .order_by(jobs.c.id)
    )
    return d.limited(old, g["limit"])


def delete_events(d: Dialect, g: Given) -> Executable:
    """Delete the event logs of jobs."""
    return delete(events).where(
        events.c.workspace_id == g["workspace_id"], events.c.job_id == g["id"]
    )


def delete_requests(d: Dialect, g: Given) -> Executable:
    """Delete what was asked of jobs that are being deleted."""
    return delete(requests).where(
        requests.c.workspace_id == g["workspace_id"], requests.c.id == g["id"]
    )


def delete_jobs(d: Dialect, g: Given) -> Executable:
    """Delete jobs that have finished."""
    return delete(jobs).where(_same_job(jobs, g), jobs.c.finished_at.is_not(None))


@dataclass(frozen=True, slots=True)
class Statement:
    """Say how a statement is built, what it takes its values from, and whether it takes many."""

    build: Callable[[Dialect, Any], Executable]
    fields: tuple[str, ...]
    many: bool = True


def _fields(row: type[Any], *more: str) -> tuple[str, ...]:
    return tuple(row._fields) + more


_CLAIM_LINE = ("line_before", "line_after")

STATEMENTS: dict[str, Statement] = {
    "insert_requests": Statement(insert_requests, _fields(rows.NewJob)),
    "insert_jobs": Statement(insert_jobs, _fields(rows.NewJob, "history")),
    "register_executions": Statement(register_executions, _fields(rows.NewJob)),
    "find_executions": Statement(find_executions, ("workspace_id", "execution_keys"), many=False),
    "forget_executions": Statement(forget_executions, _fields(rows.NewExecution)),
    "find_idempotency": Statement(find_idempotency, _fields(rows.IdempotencyRef), many=False),
    "insert_idempotency": Statement(insert_idempotency, _fields(rows.IdempotencyRow), many=False),
    "answer_idempotency": Statement(answer_idempotency, _fields(rows.IdempotencyRow), many=False),
    "delete_idempotency": Statement(delete_idempotency, ("created_at",), many=False),
    "pass_gate": Statement(pass_gate, ("name",), many=False),
    "count_waiting": Statement(count_waiting, ("pool", "limit"), many=False),
    "held_lanes": Statement(held_lanes, _fields(rows.Lane)),
    "next_workspaces": Statement(
        lambda d, g: d.next_workspaces(g), ("pool", "workspace_id", "limit"), many=False
    ),
    "claim": Statement(claim, _fields(rows.Ask, *_CLAIM_LINE), many=False),
    "pick": Statement(pick, _fields(rows.Ask), many=False),
    "take": Statement(take, _fields(rows.Ask, *_CLAIM_LINE, "ids"), many=False),
    "renew": Statement(renew, _fields(rows.Renewal)),
    "move": Statement(move, _fields(rows.Move)),
    "end": Statement(end, _fields(rows.Ending, "line")),
    "end_telling": Statement(end_telling, _fields(rows.Ending, "line")),
    "read_histories": Statement(read_histories, _fields(rows.JobRef)),
    "append": Statement(append, _fields(rows.Append)),
    "request_stop": Statement(request_stop, _fields(rows.StopAsk)),
    "report_started": Statement(report_started, _fields(rows.Held, "at")),
    "insert_events": Statement(insert_events, _fields(rows.NewEvent)),
    "read_jobs": Statement(read_jobs, _fields(rows.JobRef)),
    "lock_jobs": Statement(lock_jobs, _fields(rows.JobRef)),
    "lock_free_jobs": Statement(lock_free_jobs, _fields(rows.JobRef)),
    "promote_lanes": Statement(promote_lanes, _fields(rows.Lane)),
    "clear_lane": Statement(clear_lane, _fields(rows.Held, "source")),
    "stalled_lanes": Statement(stalled_lanes, ("limit",), many=False),
    "lane_jobs": Statement(lane_jobs, _fields(rows.Lane), many=False),
    "due_jobs": Statement(due_jobs, ("pool", "now", "limit"), many=False),
    "jobs_of_build": Statement(jobs_of_build, ("workspace_id", "build_id"), many=False),
    "read_builds": Statement(read_builds, _fields(rows.JobRef)),
    "expired_jobs": Statement(expired_jobs, ("now", "limit"), many=False),
    "overdue_jobs": Statement(overdue_jobs, ("now", "limit"), many=False),
    "finished_jobs": Statement(
        finished_jobs, ("workspace_id", "id", "finished_at", "limit"), many=False
    ),
    "delete_events": Statement(delete_events, _fields(rows.JobRef)),
    "delete_requests": Statement(delete_requests, _fields(rows.JobRef)),
    "delete_jobs": Statement(delete_jobs, _fields(rows.JobRef)),
}
