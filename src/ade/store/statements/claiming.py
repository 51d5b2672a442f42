"""The statements that hand jobs out."""

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
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import is_eligible, jobs, requests
from ade.store.statements.parts import next_line, same_row


def _next_eligible(d: Dialect, g: Given, job: FromClause) -> Any:
    return d.limited(
        d.locked_skipping(
            select(job.c.workspace_id, job.c.id)
            .where(
                is_eligible(job),
                job.c.pool == g["pool"],
                job.c.workspace_id == g["workspace_id"],
                job.c.rank >= g["floor"],
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
        "history": next_line(jobs, g["line_before"], attempt, g["line_after"]),
    }


def others_wait(d: Dialect, g: Given) -> Executable:
    """Find any other workspace with eligible jobs, without a look at those of this one."""

    def first(job: FromClause, side: ColumnElement[bool]) -> ColumnElement[Any]:
        found = select(job.c.workspace_id).where(is_eligible(job), job.c.pool == g["pool"], side)
        in_order = found.order_by(job.c.workspace_id, job.c.rank)  # as in no other index
        return d.limited(in_order, literal_column("1")).scalar_subquery()

    before, after = jobs.alias("before"), jobs.alias("after")
    return select(
        func.coalesce(
            first(after, after.c.workspace_id > g["workspace_id"]),
            first(before, before.c.workspace_id < g["workspace_id"]),
        )
    )


def claim(d: Dialect, g: Given) -> Executable:
    """Take the next eligible jobs of a workspace and return them, all in one statement."""
    waiting = jobs.alias("waiting")
    asked = [requests.c[name] for name in rows.Claim._fields if _is_asked(name)]
    picked = (
        _next_eligible(d, g, waiting)
        .with_only_columns(d.address(waiting).label("address"), *asked)
        .select_from(waiting.join(requests, same_row(waiting)))
        .cte("picked")
    )
    columns = {column.name: picked.c[column.name] for column in asked}
    columns["address"] = null()  # the row moves to another
    return (
        update(jobs)
        .where(d.address(jobs) == picked.c.address, jobs.c.eligible == literal(1))
        .values(**_taken(g))
        .returning(*[_labelled(name, columns) for name in rows.Claim._fields])
    )


def pick(d: Dialect, g: Given) -> Executable:
    """Read the next eligible jobs of a workspace as they will be when `take` has taken them."""
    columns: dict[str, ColumnElement[Any]] = {
        "fence": jobs.c.fence + literal_column("1"),
        "started_at": g["started_at"],
        "address": d.address(jobs),
    }
    columns |= {name: requests.c[name] for name in rows.Claim._fields if _is_asked(name)}
    found: Select[Any] = _next_eligible(d, g, jobs).with_only_columns(
        *[_labelled(name, columns) for name in rows.Claim._fields]
    )
    return found.select_from(jobs.join(requests, same_row()))


def _is_asked(name: str) -> bool:
    """Tell what of a claim stands in the request."""
    return name in requests.c and name not in jobs.c


def _labelled(name: str, columns: Mapping[str, ColumnElement[Any]]) -> ColumnElement[Any]:
    """Return a column of a claim: one of these, or the job's own."""
    return (columns[name] if name in columns else jobs.c[name]).label(name)


def take(d: Dialect, g: Given) -> Update:
    """Claim the jobs that were just picked."""
    return update(jobs).where(d.at_addresses(jobs, g), is_eligible(jobs)).values(**_taken(g))
