"""The statements that claim jobs."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Select,
    String,
    Update,
    case,
    cast,
    exists,
    func,
    literal,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.dml import ReturningUpdate
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import is_eligible, is_queued, jobs, queue_pauses, requests
from ade.store.sql.clauses import last_in_table, next_line, no_earlier, same_row


def _is_claimable(p: Parameters, job: FromClause) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of the jobs that a claim looks at in one workspace."""
    return (
        is_eligible(job),
        job.c.pool == p["pool"],
        job.c.workspace_id == p["workspace_id"],
        job.c.rank >= p["floor"],
        job.c.timeout_ms <= p["timeout_ms_max"],
    )


def _next_eligible(d: Dialect, p: Parameters, job: FromClause) -> Any:
    return d.limited(
        d.locked_skipping(
            select(job.c.workspace_id, job.c.id)
            .where(*_is_claimable(p, job))
            .order_by(job.c.rank, job.c.id),
            job,
        ),
        p["limit"],
    )


def _last_event_at(d: Dialect, job: FromClause) -> ColumnElement[int | None]:
    """Find when an eligible job was last changed: a job that was never moved has one event."""
    was_moved = job.c.event_seq > literal_column("1")
    return case((was_moved, last_in_table(d, job)), else_=requests.c.submitted_at)


def _taken(p: Parameters, *last_event_at: ColumnElement[int | None]) -> dict[str, Any]:
    """Change a job to claimed: status, fence and lease in one step, and its line in the log."""
    attempt = cast(jobs.c.fence + literal_column("1"), String)
    at = cast(no_earlier(p["now"], *last_event_at), String)
    return {
        "status": "running",
        "eligible": literal_column("0"),
        "fence": jobs.c.fence + literal_column("1"),
        "lease_owner": p["owner"],
        "lease_expires_at": p["expires_at"],
        "started_at": no_earlier(p["started_at"], *last_event_at),
        "event_seq": jobs.c.event_seq + literal_column("1"),
        "history": next_line(jobs, at, p["line_before"], attempt, p["line_after"]),
    }


def others_wait(d: Dialect, p: Parameters) -> Executable:
    """Find any other workspace with eligible jobs, without reading the jobs of this one."""

    def first(job: FromClause, side: ColumnElement[bool]) -> ColumnElement[Any]:
        found = select(job.c.workspace_id).where(is_eligible(job), job.c.pool == p["pool"], side)
        in_order = found.order_by(
            job.c.workspace_id, job.c.rank
        )  # this order belongs to one index only
        return d.limited(in_order, literal_column("1")).scalar_subquery()

    before, after = jobs.alias("before"), jobs.alias("after")
    return select(
        func.coalesce(
            first(after, after.c.workspace_id > p["workspace_id"]),
            first(before, before.c.workspace_id < p["workspace_id"]),
        )
    )


def claim(d: Dialect, p: Parameters) -> Executable:
    """Take the next eligible jobs of a workspace and return them, all in one statement."""
    statement, _ = _claim(d, p)
    return statement


def claim_of_kinds(d: Dialect, p: Parameters) -> Executable:
    """Take those of the next eligible jobs that are of some kinds; return how many were looked at.

    The kind is compared after the limit: a claim never walks along jobs that it cannot take.
    """
    statement, picked = _claim(d, p)
    looked_at = select(func.count()).select_from(picked).scalar_subquery()
    return statement.where(d.one_of(picked.c.kind, "kinds")).returning(looked_at)


def _claim(d: Dialect, p: Parameters) -> tuple[ReturningUpdate[Any], FromClause]:
    waiting = jobs.alias("waiting")
    requested = [requests.c[name] for name in rows.Claim._fields if _is_in_request(name)]
    picked = (
        _next_eligible(d, p, waiting)
        .with_only_columns(
            d.address(waiting).label("address"),
            *requested,
            _last_event_at(d, waiting).label("last_event_at"),
        )
        .select_from(waiting.join(requests, same_row(waiting)))
        .cte("picked")
    )
    columns = {column.name: picked.c[column.name] for column in requested}
    columns["address"] = null()  # PostgreSQL writes the changed row at another address
    statement = (
        update(jobs)
        .where(d.address(jobs) == picked.c.address, jobs.c.eligible == literal(1))
        .values(**_taken(p, picked.c.last_event_at))
        .returning(*[_labelled(name, columns) for name in rows.Claim._fields])
    )
    return statement, picked


def pick(d: Dialect, p: Parameters) -> Executable:
    """Read the next eligible jobs of a workspace as they will be when `take` has taken them.

    `started_at` is the earliest time at which each may be taken.
    """
    columns: dict[str, ColumnElement[Any]] = {
        "fence": jobs.c.fence + literal_column("1"),
        "started_at": no_earlier(p["now"], _last_event_at(d, jobs)),
        "address": d.address(jobs),
    }
    columns |= {name: requests.c[name] for name in rows.Claim._fields if _is_in_request(name)}
    found: Select[Any] = _next_eligible(d, p, jobs).with_only_columns(
        *[_labelled(name, columns) for name in rows.Claim._fields]
    )
    return found.select_from(jobs.join(requests, same_row()))


def _is_in_request(name: str) -> bool:
    """Tell whether a field of a claim is a column of the request, and not of the job."""
    return name in requests.c and name not in jobs.c


def _labelled(name: str, columns: Mapping[str, ColumnElement[Any]]) -> ColumnElement[Any]:
    """Return a column of a claim: one of these, or the job's own."""
    return (columns[name] if name in columns else jobs.c[name]).label(name)


def set_aside(d: Dialect, p: Parameters) -> Update:
    """Take those of the next eligible jobs out of the queue that are of other kinds.

    Only what is taken out is locked: other claimers may want the jobs between.
    """
    job, waiting = jobs.alias("job"), jobs.alias("waiting")
    front = d.limited(
        select(job.c.id, requests.c.kind)
        .select_from(job.join(requests, same_row(job)))
        .where(*_is_claimable(p, job))
        .order_by(job.c.rank, job.c.id),
        p["limit"],
    ).subquery("front")
    others = d.materialized(
        d.locked_skipping(
            select(waiting.c.id, front.c.kind)
            .select_from(front.join(waiting, waiting.c.id == front.c.id))
            .where(waiting.c.workspace_id == p["workspace_id"], ~d.one_of(front.c.kind, "kinds")),
            waiting,
        ),
        "others",
    )
    return (
        update(jobs)
        .where(
            jobs.c.workspace_id == p["workspace_id"], jobs.c.id == others.c.id, is_eligible(jobs)
        )
        .values(eligible=literal_column("0"), needs_kind=others.c.kind)
    )


def kinds_set_aside(d: Dialect, p: Parameters) -> Executable:
    """Find of which of these kinds jobs are set aside."""
    found = exists().where(jobs.c.pool == p["pool"], jobs.c.needs_kind == p["needs_kind"])
    return select(p["needs_kind"].label("kind")).where(found)


def recall(d: Dialect, p: Parameters) -> Update:
    """Put the first jobs of a kind that are set aside back, but for workspaces that pause it."""
    waiting = jobs.alias("waiting")
    paused = exists().where(
        queue_pauses.c.workspace_id == waiting.c.workspace_id,
        queue_pauses.c.kind == p["needs_kind"],
    )
    first = d.materialized(
        d.limited(
            d.locked_skipping(
                select(waiting.c.workspace_id, waiting.c.id)
                .where(
                    waiting.c.pool == p["pool"],
                    waiting.c.needs_kind == p["needs_kind"],
                    ~paused,
                )
                .order_by(waiting.c.rank),
                waiting,
            ),
            p["limit"],
        ),
        "first",
    )
    return (
        update(jobs)
        .where(
            jobs.c.workspace_id == first.c.workspace_id, jobs.c.id == first.c.id, is_queued(jobs)
        )
        .values(eligible=literal_column("1"), needs_kind=null())
    )


def take(d: Dialect, p: Parameters) -> Update:
    """Claim the jobs that were just picked."""
    return update(jobs).where(d.at_addresses(jobs, p), is_eligible(jobs)).values(**_taken(p))
