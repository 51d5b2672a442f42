"""The statements that claim jobs."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Select,
    String,
    Update,
    cast,
    func,
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
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import is_eligible, jobs, requests
from ade.store.sql.clauses import next_line, same_row


def _next_eligible(d: Dialect, p: Parameters, job: FromClause) -> Any:
    return d.limited(
        d.locked_skipping(
            select(job.c.workspace_id, job.c.id)
            .where(
                is_eligible(job),
                job.c.pool == p["pool"],
                job.c.workspace_id == p["workspace_id"],
                job.c.rank >= p["floor"],
            )
            .order_by(job.c.rank, job.c.id),
            job,
        ),
        p["limit"],
    )


def _taken(p: Parameters) -> dict[str, Any]:
    """Change a job to claimed: status, fence and lease in one step, and its line in the log."""
    attempt = cast(jobs.c.fence + literal_column("1"), String)
    return {
        "status": "running",
        "eligible": literal_column("0"),
        "fence": jobs.c.fence + literal_column("1"),
        "lease_owner": p["owner"],
        "lease_expires_at": p["expires_at"],
        "started_at": p["started_at"],
        "event_seq": jobs.c.event_seq + literal_column("1"),
        "history": next_line(jobs, p["line_before"], attempt, p["line_after"]),
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
    waiting = jobs.alias("waiting")
    requested = [requests.c[name] for name in rows.Claim._fields if _is_in_request(name)]
    picked = (
        _next_eligible(d, p, waiting)
        .with_only_columns(d.address(waiting).label("address"), *requested)
        .select_from(waiting.join(requests, same_row(waiting)))
        .cte("picked")
    )
    columns = {column.name: picked.c[column.name] for column in requested}
    columns["address"] = null()  # PostgreSQL writes the changed row at another address
    return (
        update(jobs)
        .where(d.address(jobs) == picked.c.address, jobs.c.eligible == literal(1))
        .values(**_taken(p))
        .returning(*[_labelled(name, columns) for name in rows.Claim._fields])
    )


def pick(d: Dialect, p: Parameters) -> Executable:
    """Read the next eligible jobs of a workspace as they will be when `take` has taken them."""
    columns: dict[str, ColumnElement[Any]] = {
        "fence": jobs.c.fence + literal_column("1"),
        "started_at": p["started_at"],
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


def take(d: Dialect, p: Parameters) -> Update:
    """Claim the jobs that were just picked."""
    return update(jobs).where(d.at_addresses(jobs, p), is_eligible(jobs)).values(**_taken(p))
