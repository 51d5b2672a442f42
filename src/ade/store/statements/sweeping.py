"""The statements that find what time has passed over, and delete what is old."""

from sqlalchemy import delete, literal, select
from sqlalchemy.sql.base import Executable

from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import artifacts, events, holds_its_lane, is_running, jobs, requests
from ade.store.statements.parts import same_job, same_row, whole_jobs


def expired_jobs(d: Dialect, g: Given) -> Executable:
    """Find running jobs whose lease nobody renewed in time."""
    gone = (
        whole_jobs()
        .where(is_running(jobs), jobs.c.lease_expires_at < g["now"])
        .order_by(jobs.c.lease_expires_at)
    )
    return d.limited(gone, g["limit"])


def overdue_jobs(d: Dialect, g: Given) -> Executable:
    """Find running jobs that are over their timeout although their lease is alive."""
    late = whole_jobs().where(
        is_running(jobs), jobs.c.started_at + jobs.c.timeout_ms * literal(1000) < g["now"]
    )
    return d.limited(late, g["limit"])


def finished_jobs(d: Dialect, g: Given) -> Executable:
    """Find old finished jobs of a workspace; identifiers sort by time, so the key finds them."""
    old = (
        select(jobs.c.workspace_id, jobs.c.id, requests.c.execution_key)
        .select_from(jobs.join(requests, same_row()))
        .where(
            jobs.c.workspace_id == g["workspace_id"],
            jobs.c.id < g["id"],
            jobs.c.finished_at < g["finished_at"],
            ~holds_its_lane(jobs),
        )
        .order_by(jobs.c.id)
    )
    return d.limited(old, g["limit"])


def delete_artifacts(d: Dialect, g: Given) -> Executable:
    """Forget the files that jobs left; their bytes are collected later."""
    return delete(artifacts).where(
        artifacts.c.workspace_id == g["workspace_id"], artifacts.c.job_id == g["id"]
    )


def delete_events(d: Dialect, g: Given) -> Executable:
    """Delete the event logs of jobs."""
    return delete(events).where(
        events.c.workspace_id == g["workspace_id"], events.c.job_id == g["id"]
    )


def delete_requests(d: Dialect, g: Given) -> Executable:
    """Delete what was asked of jobs that are being deleted."""
    return delete(requests).where(
        requests.c.workspace_id == g["workspace_id"], requests.c.id == g["id"]
    )


def delete_jobs(d: Dialect, g: Given) -> Executable:
    """Delete jobs that have finished."""
    return delete(jobs).where(same_job(jobs, g), jobs.c.finished_at.is_not(None))
