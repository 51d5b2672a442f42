"""The statements that find jobs whose lease or time is over, and delete old ones."""

from typing import Any

from sqlalchemy import Select, delete, exists, literal, select
from sqlalchemy.sql.base import Executable

from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    artifacts,
    builds,
    events,
    holds_its_lane,
    is_running,
    jobs,
    requests,
)
from ade.store.sql.clauses import same_job, same_row, whole_jobs


def expired_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find running jobs whose lease has expired."""
    gone = (
        whole_jobs()
        .where(is_running(jobs), jobs.c.lease_expires_at < p["now"])
        .order_by(jobs.c.lease_expires_at)
    )
    return d.limited(gone, p["limit"])


def overdue_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find running jobs that are over their timeout although their lease is alive."""
    late = whole_jobs().where(
        is_running(jobs), jobs.c.started_at + jobs.c.timeout_ms * literal(1000) < p["now"]
    )
    return d.limited(late, p["limit"])


def finished_jobs(d: Dialect, p: Parameters) -> Executable:
    """Lock old finished jobs of a workspace; identifiers sort by time, so the key finds them.

    A job that another transaction has locked is skipped: it may be resumed there. One that was
    changed since this statement began is looked at again once it is locked. The job of a build is
    kept as long as its build: an activation relies on it.
    """
    return d.limited(d.locked_skipping(_old(p), jobs), p["limit"])


def old_jobs(d: Dialect, p: Parameters) -> Executable:
    """List what `finished_jobs` finds, after an identifier, without locking it."""
    return d.limited(_old(p).where(jobs.c.id > p["first_id"]), p["limit"])


def _old(p: Parameters) -> Select[Any]:
    makes_build = exists().where(
        builds.c.workspace_id == jobs.c.workspace_id, builds.c.job_id == jobs.c.id
    )
    return (
        select(
            jobs.c.workspace_id,
            jobs.c.id,
            requests.c.execution_key,
            jobs.c.status,
            jobs.c.pool,
            requests.c.kind,
            requests.c.priority,
            jobs.c.finished_at,
        )
        .select_from(jobs.join(requests, same_row()))
        .where(
            jobs.c.workspace_id == p["workspace_id"],
            jobs.c.id < p["id"],
            jobs.c.finished_at < p["finished_at"],
            ~holds_its_lane(jobs),
            ~makes_build,
        )
        .order_by(jobs.c.id)
    )


def delete_artifacts(d: Dialect, p: Parameters) -> Executable:
    """Delete the artifacts of jobs; their bytes are collected later."""
    return delete(artifacts).where(
        artifacts.c.workspace_id == p["workspace_id"], artifacts.c.job_id == p["id"]
    )


def delete_events(d: Dialect, p: Parameters) -> Executable:
    """Delete the event logs of jobs."""
    return delete(events).where(
        events.c.workspace_id == p["workspace_id"], events.c.job_id == p["id"]
    )


def delete_requests(d: Dialect, p: Parameters) -> Executable:
    """Delete the requests of jobs that are being deleted."""
    return delete(requests).where(
        requests.c.workspace_id == p["workspace_id"], requests.c.id == p["id"]
    )


def delete_jobs(d: Dialect, p: Parameters) -> Executable:
    """Delete jobs that have finished."""
    return delete(jobs).where(same_job(jobs, p), jobs.c.finished_at.is_not(None))
