"""The statements on the counters of jobs (see `ade.store.job_counts`)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, delete, exists, func, insert, literal_column, select, update
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.domain.job import TERMINAL
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import job_counts, jobs, requests
from ade.store.sql.clauses import insert_values, same, same_job, same_row

KEY = ("workspace_id", "pool", "kind", "priority", "status", "shard")
COUNTER = (*KEY, "jobs")
# A list with these filters alone is counted by the counters.
COUNTED_BY = ("kind", "priority", "status")
_FIRST_SHARD: ColumnElement[int] = literal_column("0")


def insert_counters(d: Dialect, p: Parameters) -> Executable:
    """Insert counters, unless they exist."""
    values = {name: p[name] for name in COUNTER}
    if (passing := d.insert_or_pass(job_counts)) is not None:
        return insert_values(p, passing, values)
    known = exists().where(*[job_counts.c[name] == values[name] for name in KEY])
    source = select(*[value.label(name) for name, value in values.items()]).where(~known)
    return insert(job_counts).from_select(list(values), source)


def add_to_counters(d: Dialect, p: Parameters) -> Executable:
    """Add differences to counters."""
    return (
        update(job_counts)
        .where(same(job_counts, p, *KEY))
        .values(jobs=job_counts.c.jobs + p["jobs"])
    )


def read_facets(d: Dialect, p: Parameters) -> Executable:
    """Read what jobs are counted by."""
    return (
        select(jobs.c.id, jobs.c.pool, requests.c.kind, requests.c.priority)
        .select_from(jobs.join(requests, same_row()))
        .where(same_job(jobs, p))
    )


def delete_counters(d: Dialect, p: Parameters) -> Executable:
    """Delete all counters."""
    return delete(job_counts)


def _counted() -> Select[Any]:
    """Count all jobs."""
    by: Sequence[ColumnElement[Any]] = (
        jobs.c.workspace_id,
        jobs.c.pool,
        requests.c.kind,
        requests.c.priority,
        jobs.c.status,
    )
    return (
        select(*by, func.count().label("jobs"))
        .select_from(jobs.join(requests, same_row()))
        .group_by(*by)
    )


def count_anew(d: Dialect, p: Parameters) -> Executable:
    """Count all jobs, and insert the counters."""
    counted = _counted().subquery("counted")
    columns = [counted.c[name] for name in KEY[:-1]]
    source = select(*columns, _FIRST_SHARD.label("shard"), counted.c.jobs)
    return insert(job_counts).from_select(COUNTER, source)


def wrong_counters() -> Select[Any]:
    """Find workspaces whose counters are not what there is."""
    counted = _counted().subquery("counted")
    noted = select(*[job_counts.c[name] for name in COUNTER if name != "shard"])
    there = select(*[counted.c[name] for name in KEY[:-1]], (-counted.c.jobs).label("jobs"))
    both = noted.union_all(there).subquery("both")
    keys = [both.c[name] for name in KEY[:-1]]
    wrong = select(*keys).group_by(*keys).having(func.sum(both.c.jobs) != literal_column("0"))
    found = wrong.subquery("wrong").c.workspace_id
    return select(found, found.label("id")).distinct()


def sum_counters(d: Dialect, p: Parameters) -> Executable:
    """Add up the counters of a workspace over pools and shards."""
    by = [job_counts.c[name] for name in COUNTED_BY]
    return (
        select(*by, func.sum(job_counts.c.jobs))
        .where(job_counts.c.workspace_id == p["workspace_id"])
        .group_by(*by)
    )


def count_by_status(d: Dialect, p: Parameters) -> Executable:
    """Count the unfinished jobs by pool and status."""
    ended: list[ColumnElement[str]] = [
        literal_column(f"'{status.value}'") for status in sorted(TERMINAL)
    ]
    count = func.sum(job_counts.c.jobs)
    return (
        select(job_counts.c.pool, job_counts.c.status, count)
        .where(job_counts.c.status.not_in(ended))
        .group_by(job_counts.c.pool, job_counts.c.status)
        .having(count != literal_column("0"))
    )
