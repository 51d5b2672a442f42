"""The statements that only read jobs: for the API, the metrics and the event log."""

from sqlalchemy import func, or_, select
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import artifacts, events, is_eligible, is_queued, jobs, requests, workspaces
from ade.store.sql.clauses import same_job, same_lane, whole_jobs


def read_job(d: Dialect, p: Parameters) -> Executable:
    """Read one job."""
    return whole_jobs().where(same_job(jobs, p))


def read_payload(d: Dialect, p: Parameters) -> Executable:
    """Read the payload of a job."""
    return select(requests.c.payload).where(same_job(requests, p))


def read_result(d: Dialect, p: Parameters) -> Executable:
    """Read the result of a job."""
    return select(jobs.c.result).where(same_job(jobs, p))


def read_artifacts(d: Dialect, p: Parameters) -> Executable:
    """Read the files that the result of a job names."""
    return (
        select(*[artifacts.c[name] for name in rows.ArtifactRow._fields])
        .where(artifacts.c.workspace_id == p["workspace_id"], artifacts.c.job_id == p["id"])
        .order_by(artifacts.c.id)
    )


def read_events(d: Dialect, p: Parameters) -> Executable:
    """Read the events of a job in the table, after a position."""
    return d.limited(
        select(*[events.c[name] for name in rows.NewEvent._fields])
        .where(
            events.c.workspace_id == p["workspace_id"],
            events.c.job_id == p["id"],
            events.c.seq > p["seq"],
        )
        .order_by(events.c.seq),
        p["limit"],
    )


def read_history(d: Dialect, p: Parameters) -> Executable:
    """Read the events that a job keeps in its own row."""
    return select(jobs.c.history).where(same_job(jobs, p))


def count_ahead(d: Dialect, p: Parameters) -> Executable:
    """Count the eligible jobs of a workspace that are claimed before a job, up to a limit."""
    ahead = (
        select(jobs.c.id)
        .where(
            is_eligible(jobs),
            jobs.c.pool == p["pool"],
            jobs.c.workspace_id == p["workspace_id"],
            jobs.c.rank <= p["rank"],
            or_(jobs.c.rank < p["rank"], jobs.c.id < p["id"]),
        )
        .order_by(jobs.c.rank, jobs.c.id)
    )
    return select(func.count()).select_from(d.limited(ahead, p["limit"]).subquery())


def count_lane(d: Dialect, p: Parameters) -> Executable:
    """Count the queued jobs of a lane, up to a limit."""
    queued = select(jobs.c.id).where(
        is_queued(jobs),
        same_lane(jobs, p),
        jobs.c.target_id.is_not(None),
    )
    return select(func.count()).select_from(d.limited(queued, p["limit"]).subquery())


def workspace_ids(d: Dialect, p: Parameters) -> Executable:
    """List all workspaces."""
    return select(workspaces.c.id).order_by(workspaces.c.id)
