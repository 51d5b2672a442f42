"""Clauses that statements share: how jobs are read, matched and logged."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Insert,
    Select,
    String,
    Table,
    and_,
    case,
    cast,
    insert,
    literal_column,
    select,
)
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import events, jobs, requests

JOB_COLUMNS = [jobs.c[name] if name in jobs.c else requests.c[name] for name in rows.JobRow._fields]
MOVED = [jobs.c[name] for name in rows.Moved._fields]


def same_row(job: FromClause = jobs) -> ColumnElement[bool]:
    """Match the two halves of a job."""
    return and_(requests.c.workspace_id == job.c.workspace_id, requests.c.id == job.c.id)


def whole_jobs() -> Select[Any]:
    """Read jobs, both halves."""
    return select(*JOB_COLUMNS).select_from(jobs.join(requests, same_row()))


def next_line(
    job: FromClause, at: ColumnElement[Any], *parts: ColumnElement[Any]
) -> ColumnElement[str]:
    """Write a line into a job's own log, at the place that the same statement takes."""
    seq = cast(job.c.event_seq + literal_column("1"), String)
    line = job.c.history + seq + literal_column("' '") + at
    for part in parts:
        line = line + part
    return line


def no_earlier(at: ColumnElement[int], *recorded: ColumnElement[int | None]) -> ColumnElement[int]:
    """Return a time, or what was recorded before if that is later: a log never runs backwards.

    Processes may differ by a round trip, and the database's own clock may be set back.
    """
    for earlier in recorded:
        at = case((at < earlier, earlier), else_=at)  # one that is null is not later
    return at


def last_in_table(d: Dialect, job: FromClause) -> ColumnElement[int | None]:
    """Find the time of a job's newest event in the table of events, if it has one there."""
    of_job = select(events.c.at).where(
        events.c.workspace_id == job.c.workspace_id, events.c.job_id == job.c.id
    )
    newest = of_job.correlate(job).order_by(events.c.seq.desc())
    return d.limited(newest, literal_column("1")).scalar_subquery()


def same(table: FromClause, p: Parameters, *names: str) -> ColumnElement[bool]:
    """Match rows by the parameters of these names."""
    return and_(*[table.c[name] == p[name] for name in names])


def same_job(job: FromClause, p: Parameters) -> ColumnElement[bool]:
    return and_(job.c.workspace_id == p["workspace_id"], job.c.id == p["id"])


def holds_lease(d: Dialect, job: FromClause, p: Parameters) -> ColumnElement[bool]:
    """Match the running job that has this fence: the caller holds its lease."""
    return and_(same_job(job, p), job.c.fence == p["fence"], d.runs(job))


def same_lane(job: FromClause, p: Parameters) -> ColumnElement[bool]:
    return and_(job.c.workspace_id == p["workspace_id"], job.c.target_id == p["target_id"])


def insert_values(
    p: Parameters, into: Table | Insert, values: Mapping[str, ColumnElement[Any]]
) -> Insert:
    """Insert one row with VALUES, or many with SELECT."""
    statement = into if isinstance(into, Insert) else insert(into)
    if p.is_one_row:
        return statement.values(**values)
    source = select(*[value.label(name) for name, value in values.items()])
    return statement.from_select(list(values), source)
