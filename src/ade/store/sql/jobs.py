"""The statements that change jobs: each has in its WHERE what the caller saw of the job."""

from typing import Any

from sqlalchemy import (
    Insert,
    Select,
    String,
    Update,
    case,
    cast,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import artifacts, events, jobs
from ade.store.sql.clauses import (
    MOVED,
    holds_lease,
    insert_values,
    last_in_table,
    next_line,
    no_earlier,
    same_job,
    whole_jobs,
)


def read_jobs(d: Dialect, p: Parameters) -> Select[Any]:
    """Read jobs."""
    return whole_jobs().where(same_job(jobs, p))


def lock_jobs(d: Dialect, p: Parameters) -> Executable:
    """Read jobs and keep others from changing them until the end of the transaction."""
    return d.locked(read_jobs(d, p), jobs)


def lock_free_jobs(d: Dialect, p: Parameters) -> Executable:
    """Read and lock jobs, passing over those that others have locked."""
    return d.locked_skipping(read_jobs(d, p), jobs)


def renew(d: Dialect, p: Parameters) -> Update:
    """Extend leases, and return whether their jobs were asked to stop."""
    return (
        update(jobs)
        .where(holds_lease(d, jobs, p))
        .values(lease_expires_at=p["expires_at"])
        .returning(*[jobs.c[name] for name in rows.Renewed._fields])
    )


def move(d: Dialect, p: Parameters) -> Update:
    """Move jobs out of the status and fence that were seen, and empty their own logs."""
    written = (
        "status eligible holds_lane retries_left not_before started_at finished_at"
        " usage isolation error result"
    )
    return (
        update(jobs)
        .where(same_job(jobs, p), jobs.c.fence == p["fence"], jobs.c.status == p["source"])
        .values(
            lease_owner=null(),
            lease_expires_at=null(),
            stop_request=null(),
            needs_kind=null(),
            evaluation=null(),
            counts=null(),
            event_seq=jobs.c.event_seq + literal_column("1"),
            history=literal_column("''"),
            **{name: p[name] for name in written.split()},
        )
        .returning(*MOVED)
    )


def end(d: Dialect, p: Parameters) -> Update:
    """Record how running attempts ended, each with its line in the log.

    The third event of a job and all between the start and the end are in the table of events.
    """
    written = "status holds_lane usage isolation error result evaluation counts"
    reported = case((jobs.c.event_seq > literal_column("2"), last_in_table(d, jobs)))
    finished_at = no_earlier(p["finished_at"], jobs.c.started_at, reported)
    return (
        update(jobs)
        .where(holds_lease(d, jobs, p))
        .values(
            lease_owner=null(),
            lease_expires_at=null(),
            stop_request=null(),
            event_seq=jobs.c.event_seq + literal_column("1"),
            finished_at=finished_at,
            history=next_line(jobs, cast(finished_at, String), p["line"]),
            **{name: p[name] for name in written.split()},
        )
    )


def end_at_address(d: Dialect, p: Parameters) -> Update:
    """Record how attempts ended, finding each row at the address that its claim returned."""
    return end(d, p).where(d.address(jobs) == p["address"])


def end_returning(d: Dialect, p: Parameters) -> Update:
    """Record how attempts ended, and return those that were recorded."""
    return end(d, p).returning(jobs.c.id, jobs.c.fence)


def read_histories(d: Dialect, p: Parameters) -> Executable:
    """Read the events that jobs keep in their own rows, and when the newest other one was."""
    return select(
        jobs.c.workspace_id, jobs.c.id, jobs.c.history, last_in_table(d, jobs).label("at")
    ).where(same_job(jobs, p))


def append(d: Dialect, p: Parameters) -> Update:
    """Reserve positions in event logs for the holder of the lease, up to the log's limit."""
    return (
        update(jobs)
        .where(
            holds_lease(d, jobs, p),
            jobs.c.event_seq + p["places"] <= p["event_seq_max"],
        )
        .values(
            event_seq=jobs.c.event_seq + p["places"],
            progress=func.coalesce(p["progress"], jobs.c.progress),
        )
        .returning(*MOVED)
    )


def request_stop(d: Dialect, p: Parameters) -> Update:
    """Ask running attempts to stop."""
    return (
        update(jobs)
        .where(holds_lease(d, jobs, p))
        .values(stop_request=p["stop_request"], event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*MOVED)
    )


def report_started(d: Dialect, p: Parameters) -> Update:
    """Record that dispatched attempts have begun."""
    return (
        update(jobs)
        .where(holds_lease(d, jobs, p), jobs.c.started_at.is_(None))
        .values(started_at=p["at"], event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*MOVED)
    )


def insert_artifacts(d: Dialect, p: Parameters) -> Insert:
    """Insert the files that results name."""
    return insert_values(p, artifacts, {name: p[name] for name in rows.ArtifactRow._fields})


def insert_events(d: Dialect, p: Parameters) -> Insert:
    """Insert events as they are, those of a job's own row among them."""
    return insert_values(p, events, {name: p[name] for name in rows.NewEvent._fields})


def append_events(d: Dialect, p: Parameters) -> Insert:
    """Insert events at reserved positions, none earlier than what is recorded of its job."""
    job = jobs.alias("job")
    recorded = func.coalesce(job.c.finished_at, job.c.started_at)
    values = {name: p[name] for name in rows.NewEvent._fields}
    values["at"] = no_earlier(p["at"], recorded, last_in_table(d, job))
    source = select(*[value.label(name) for name, value in values.items()]).where(
        job.c.workspace_id == p["workspace_id"], job.c.id == p["job_id"]
    )
    return insert(events).from_select(list(values), source)
