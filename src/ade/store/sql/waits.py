"""The statements about what jobs wait for: lanes, times, builds."""

from sqlalchemy import Update, exists, literal_column, select, update
from sqlalchemy.sql.base import Executable

from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import holds_its_lane, is_held, is_queued, jobs, requests
from ade.store.sql.clauses import MOVED, same_job, same_lane, whole_jobs


def held_lanes(d: Dialect, p: Parameters) -> Executable:
    """Find which of these lanes have a holder."""
    holder = jobs.alias("holder")
    return select(p["workspace_id"].label("workspace_id"), p["target_id"].label("target_id")).where(
        exists().where(same_lane(holder, p), holds_its_lane(holder))
    )


def promote_lanes(d: Dialect, p: Parameters) -> Update:
    """Make the first queued job of each lane eligible, unless the lane has a holder.

    A job that was resumed and waits for a time is skipped until then.
    """
    waiting, holder = jobs.alias("waiting"), jobs.alias("holder")
    first = d.limited(
        select(waiting.c.id)
        .where(same_lane(waiting, p), is_queued(waiting), waiting.c.not_before.is_(None))
        .order_by(waiting.c.rank, waiting.c.id),
        literal_column("1"),
    ).scalar_subquery()
    free = ~exists().where(same_lane(holder, p), holds_its_lane(holder))
    heads = d.materialized(
        select(p["workspace_id"].label("workspace_id"), first.label("id")).where(free), "heads"
    )
    return (
        update(jobs)
        .where(
            jobs.c.workspace_id == heads.c.workspace_id, jobs.c.id == heads.c.id, is_queued(jobs)
        )
        .values(eligible=literal_column("1"), holds_lane=literal_column("1"))
        .returning(jobs.c.workspace_id, jobs.c.id, jobs.c.pool)
    )


def clear_lane(d: Dialect, p: Parameters) -> Update:
    """Take the lane from a job that ended without success."""
    return (
        update(jobs)
        .where(
            same_job(jobs, p),
            jobs.c.fence == p["fence"],
            jobs.c.status == p["source"],
            holds_its_lane(jobs),
        )
        .values(holds_lane=literal_column("0"), event_seq=jobs.c.event_seq + literal_column("1"))
        .returning(*MOVED)
    )


def stalled_lanes(d: Dialect, p: Parameters) -> Executable:
    """Find lanes with queued jobs and no holder; there are none unless a promotion was lost."""
    waiting, holder = jobs.alias("waiting"), jobs.alias("holder")
    taken = exists().where(
        holder.c.workspace_id == waiting.c.workspace_id,
        holder.c.target_id == waiting.c.target_id,
        holds_its_lane(holder),
    )
    return d.limited(
        select(waiting.c.workspace_id, waiting.c.target_id)
        .where(
            is_queued(waiting),
            waiting.c.target_id.is_not(None),
            waiting.c.not_before.is_(None),
            ~taken,
        )
        .distinct(),
        p["limit"],
    )


def lane_jobs(d: Dialect, p: Parameters) -> Executable:
    """Read the jobs that hold a lane."""
    return whole_jobs().where(same_lane(jobs, p), holds_its_lane(jobs)).order_by(jobs.c.rank)


def due_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find jobs whose time has come."""
    held = (
        whole_jobs()
        .where(is_held(jobs), jobs.c.pool == p["pool"], jobs.c.not_before <= p["now"])
        .order_by(jobs.c.not_before)
    )
    return d.limited(held, p["limit"])


def jobs_of_build(d: Dialect, p: Parameters) -> Executable:
    """Lock jobs that wait for a build."""
    waiting = whole_jobs().where(
        requests.c.workspace_id == p["workspace_id"],
        requests.c.build_id == p["build_id"],
        is_held(jobs),
    )
    return d.locked(waiting, jobs)
