"""The statements that only read jobs: for the API, the metrics and the event log."""

from sqlalchemy import func, or_, select
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    artifacts,
    events,
    is_eligible,
    is_queued,
    is_running,
    jobs,
    requests,
    workspaces,
)
from ade.store.sql.clauses import same_job, same_lane, same_row, whole_jobs


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


def list_leases(d: Dialect, p: Parameters) -> Executable:
    """List the leases that are held, by their holders."""
    columns = [(requests if name == "kind" else jobs).c[name] for name in rows.LiveLease._fields]
    held = select(*columns).select_from(jobs.join(requests, same_row())).where(is_running(jobs))
    return d.limited(held.order_by(jobs.c.lease_owner, jobs.c.id), p["limit"])


def find_workspace_of_job(d: Dialect, p: Parameters) -> Executable:
    """Find the workspace of a job by the job's id alone: one look for each workspace."""
    return select(workspaces.c.id).where(
        workspaces.c.id == jobs.c.workspace_id, jobs.c.id == p["id"]
    )


def workspace_ids(d: Dialect, p: Parameters) -> Executable:
    """List all workspaces."""
    return select(workspaces.c.id).order_by(workspaces.c.id)


def known_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find which of these jobs there are, in any workspace."""
    in_workspace = workspaces.join(jobs, jobs.c.workspace_id == workspaces.c.id)
    return select(jobs.c.id).select_from(in_workspace).where(d.one_of(jobs.c.id, "ids"))
