"""What the statements have in common: how jobs are read, matched and logged."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Insert,
    Select,
    String,
    Table,
    and_,
    cast,
    insert,
    literal_column,
    select,
)
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.store import rows
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import jobs, requests

JOB_COLUMNS = [jobs.c[name] if name in jobs.c else requests.c[name] for name in rows.JobRow._fields]
MOVED = [jobs.c[name] for name in rows.Moved._fields]


def same_row(job: FromClause = jobs) -> ColumnElement[bool]:
    """Match the two halves of a job."""
    return and_(requests.c.workspace_id == job.c.workspace_id, requests.c.id == job.c.id)


def whole_jobs() -> Select[Any]:
    """Read jobs, both halves."""
    return select(*JOB_COLUMNS).select_from(jobs.join(requests, same_row()))


def next_line(job: FromClause, *parts: ColumnElement[Any]) -> ColumnElement[str]:
    """Write a line into a job's own log, at the place that the same statement takes."""
    line = job.c.history + cast(job.c.event_seq + literal_column("1"), String)
    for part in parts:
        line = line + part
    return line


def same(table: FromClause, g: Given, *names: str) -> ColumnElement[bool]:
    """Match rows that have the values that are given for these columns."""
    return and_(*[table.c[name] == g[name] for name in names])


def same_job(job: FromClause, g: Given) -> ColumnElement[bool]:
    return and_(job.c.workspace_id == g["workspace_id"], job.c.id == g["id"])


def holds_lease(d: Dialect, job: FromClause, g: Given) -> ColumnElement[bool]:
    """Match the job of whoever presents its current fence."""
    return and_(same_job(job, g), job.c.fence == g["fence"], d.runs(job))


def same_lane(job: FromClause, g: Given) -> ColumnElement[bool]:
    return and_(job.c.workspace_id == g["workspace_id"], job.c.target_id == g["target_id"])


def insert_values(
    g: Given, into: Table | Insert, values: Mapping[str, ColumnElement[Any]]
) -> Insert:
    """Insert what is given: one row by VALUES, many by SELECT."""
    statement = into if isinstance(into, Insert) else insert(into)
    if g.is_one_row:
        return statement.values(**values)
    source = select(*[value.label(name) for name, value in values.items()])
    return statement.from_select(list(values), source)
