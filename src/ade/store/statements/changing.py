"""The statements that change jobs: each carries what was seen of the job in its WHERE."""

from typing import Any

from sqlalchemy import Insert, Select, Update, func, literal_column, null, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import artifacts, events, jobs
from ade.store.statements.parts import (
    MOVED,
    holds_lease,
    insert_values,
    next_line,
    same_job,
    whole_jobs,
)


def read_jobs(d: Dialect, g: Given) -> Select[Any]:
    """Read jobs."""
    return whole_jobs().where(same_job(jobs, g))


def lock_jobs(d: Dialect, g: Given) -> Executable:
    """Read jobs and keep others from changing them until the end of the transaction."""
    return d.locked(read_jobs(d, g), jobs)


def lock_free_jobs(d: Dialect, g: Given) -> Executable:
    """Read and lock jobs, passing over those that others have locked."""
    return d.locked_skipping(read_jobs(d, g), jobs)


def renew(d: Dialect, g: Given) -> Update:
    """Keep leases, and learn what was asked of their jobs."""
    return (
        update(jobs)
        .where(holds_lease(d, jobs, g))
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
        .where(same_job(jobs, g), jobs.c.fence == g["fence"], jobs.c.status == g["source"])
        .values(
            lease_owner=null(),
            lease_expires_at=null(),
            stop_request=null(),
            event_seq=jobs.c.event_seq + literal_column("1"),
            history=literal_column("''"),
            **{name: g[name] for name in written.split()},
        )
        .returning(*MOVED)
    )


def end(d: Dialect, g: Given) -> Update:
    """Record how running attempts ended, each with its line in the log."""
    written = "status holds_lane finished_at usage isolation error result"
    return (
        update(jobs)
        .where(holds_lease(d, jobs, g))
        .values(
            lease_owner=null(),
            lease_expires_at=null(),
            stop_request=null(),
            event_seq=jobs.c.event_seq + literal_column("1"),
            history=next_line(jobs, g["line"]),
            **{name: g[name] for name in written.split()},
        )
    )


def end_there(d: Dialect, g: Given) -> Update:
    """Record ends of attempts whose rows are where their claims saw them."""
    return end(d, g).where(d.address(jobs) == g["address"])


def end_telling(d: Dialect, g: Given) -> Update:
    """Record ends, and tell which were."""
    return end(d, g).returning(jobs.c.id, jobs.c.fence)


def read_histories(d: Dialect, g: Given) -> Executable:
    """Read the lines that jobs keep of their logs."""
    return select(jobs.c.workspace_id, jobs.c.id, jobs.c.history).where(same_job(jobs, g))


def append(d: Dialect, g: Given) -> Update:
    """Reserve places in event logs for whoever holds the lease, up to the log's limit."""
    return (
        update(jobs)
        .where(
            holds_lease(d, jobs, g),
            jobs.c.event_seq + g["places"] <= g["event_seq_max"],
        )
        .values(
            event_seq=jobs.c.event_seq + g["places"],
            progress=func.coalesce(g["progress"], jobs.c.progress),
        )
        .returning(*MOVED)
    )


def request_stop(d: Dialect, g: Given) -> Update:
    """Ask running attempts to stop."""
    return (
        update(jobs)
        .where(holds_lease(d, jobs, g))
        .values(stop_request=g["stop_request"], event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*MOVED)
    )


def report_started(d: Dialect, g: Given) -> Update:
    """Record that dispatched attempts have begun."""
    return (
        update(jobs)
        .where(holds_lease(d, jobs, g), jobs.c.started_at.is_(None))
        .values(started_at=g["at"], event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*MOVED)
    )


def insert_artifacts(d: Dialect, g: Given) -> Insert:
    """Remember the files that results name, in the transaction that records these."""
    return insert_values(g, artifacts, {name: g[name] for name in rows.ArtifactRow._fields})


def insert_events(d: Dialect, g: Given) -> Insert:
    """Append events whose places were reserved by an update of their job."""
    return insert_values(g, events, {name: g[name] for name in rows.NewEvent._fields})
