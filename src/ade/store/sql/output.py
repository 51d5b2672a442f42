"""The statements on what jobs write while they run."""

from sqlalchemy import Insert, delete, select
from sqlalchemy import literal_column as literally
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import jobs, output_batches
from ade.store.sql.clauses import holds_lease, insert_values

_c = output_batches.c


def _newest(
    d: Dialect, column: ColumnElement[int], *conditions: ColumnElement[bool]
) -> ColumnElement[int | None]:
    """Find a column of the newest batch of a job."""
    of_job = select(column).where(
        _c.workspace_id == jobs.c.workspace_id, _c.job_id == jobs.c.id, *conditions
    )
    newest = of_job.correlate(jobs).order_by(_c.seq.desc())
    return d.limited(newest, literally("1")).scalar_subquery()


def hold_output(d: Dialect, p: Parameters) -> Executable:
    """Lock the jobs of leases that are held, and find how far their output is stored."""
    stored = select(
        jobs.c.workspace_id,
        jobs.c.id,
        jobs.c.fence,
        _newest(d, _c.seq).label("seq"),
        _newest(d, _c.ends, _c.attempt == jobs.c.fence).label("ends"),
    ).where(holds_lease(d, jobs, p))
    return d.locked(stored, jobs)


def insert_output(d: Dialect, p: Parameters) -> Insert:
    """Insert batches of output."""
    return insert_values(p, output_batches, {name: p[name] for name in rows.OutputBatch._fields})


def drop_output(d: Dialect, p: Parameters) -> Executable:
    """Delete the batches of an attempt that lie between two places of its output."""
    return delete(output_batches).where(
        _c.workspace_id == p["workspace_id"],
        _c.job_id == p["id"],
        _c.attempt == p["attempt"],
        _c.starts >= p["starts"],
        _c.ends <= p["ends"],
    )


def drop_attempts(d: Dialect, p: Parameters) -> Executable:
    """Delete the output of a job's attempts up to one."""
    return delete(output_batches).where(
        _c.workspace_id == p["workspace_id"], _c.job_id == p["id"], _c.attempt <= p["attempt"]
    )


def delete_output(d: Dialect, p: Parameters) -> Executable:
    """Delete the output of jobs that are being deleted."""
    return delete(output_batches).where(_c.workspace_id == p["workspace_id"], _c.job_id == p["id"])


def read_output(d: Dialect, p: Parameters) -> Executable:
    """Read the output of a job in the order of its log, after a place."""
    return d.limited(
        select(*[_c[name] for name in rows.OutputBatch._fields])
        .where(_c.workspace_id == p["workspace_id"], _c.job_id == p["id"], _c.seq > p["seq"])
        .order_by(_c.seq),
        p["limit"],
    )
