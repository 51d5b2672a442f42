"""The statements that only read, for the doors."""

from sqlalchemy import func, or_, select

from ade.store import rows
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import artifacts, events, is_eligible, is_queued, jobs, requests, workspaces
from ade.store.statements.parts import same_job, same_lane, whole_jobs
from ade.store.statements.statement import Statement

EQUAL_FILTERS = ("status", "kind", "target_id", "priority", "submitted_by", "rerun_of")

READ_JOB = Statement(
    lambda d, g: whole_jobs().where(same_job(jobs, g)),
    rows.JobRef._fields,
    many=False,
)
READ_PAYLOAD = Statement(
    lambda d, g: select(requests.c.payload).where(same_job(requests, g)),
    rows.JobRef._fields,
    many=False,
)
READ_RESULT = Statement(
    lambda d, g: select(jobs.c.result).where(same_job(jobs, g)),
    rows.JobRef._fields,
    many=False,
)


READ_ARTIFACTS = Statement(
    lambda d, g: (
        select(*[artifacts.c[name] for name in rows.ArtifactRow._fields])
        .where(artifacts.c.workspace_id == g["workspace_id"], artifacts.c.job_id == g["id"])
        .order_by(artifacts.c.id)
    ),
    rows.JobRef._fields,
    many=False,
)


def _read_events(d: Dialect, g: Given):  # type: ignore[no-untyped-def]
    return d.limited(
        select(*[events.c[name] for name in rows.NewEvent._fields])
        .where(
            events.c.workspace_id == g["workspace_id"],
            events.c.job_id == g["id"],
            events.c.seq > g["seq"],
        )
        .order_by(events.c.seq),
        g["limit"],
    )


READ_HISTORY = Statement(
    lambda d, g: select(jobs.c.history).where(same_job(jobs, g)),
    rows.JobRef._fields,
    many=False,
)
READ_EVENTS = Statement(_read_events, (*rows.JobRef._fields, "seq", "limit"), many=False)


def _count_ahead(d: Dialect, g: Given):  # type: ignore[no-untyped-def]
    ahead = (
        select(jobs.c.id)
        .where(
            is_eligible(jobs),
            jobs.c.pool == g["pool"],
            jobs.c.workspace_id == g["workspace_id"],
            jobs.c.rank <= g["rank"],
            or_(jobs.c.rank < g["rank"], jobs.c.id < g["id"]),
        )
        .order_by(jobs.c.rank, jobs.c.id)
    )
    return select(func.count()).select_from(d.limited(ahead, g["limit"]).subquery())


COUNT_AHEAD = Statement(_count_ahead, ("workspace_id", "pool", "rank", "id", "limit"), many=False)


def _count_lane(d: Dialect, g: Given):  # type: ignore[no-untyped-def]
    queued = select(jobs.c.id).where(
        is_queued(jobs),
        same_lane(jobs, g),
        jobs.c.target_id.is_not(None),
    )
    return select(func.count()).select_from(d.limited(queued, g["limit"]).subquery())


COUNT_LANE = Statement(_count_lane, (*rows.Lane._fields, "limit"), many=False)

WORKSPACE_IDS = Statement(
    lambda d, g: select(workspaces.c.id).order_by(workspaces.c.id), (), many=False
)

COUNT_BY_STATUS = Statement(
    lambda d, g: (
        select(jobs.c.pool, jobs.c.status, func.count())
        .where(jobs.c.finished_at.is_(None))
        .group_by(jobs.c.pool, jobs.c.status)
    ),
    (),
    many=False,
)


def list_jobs(names: tuple[str, ...], *, paged: bool) -> Statement:
    """List jobs of a workspace, newest first: identifiers sort by time, so the key is the order."""

    def build(d: Dialect, g: Given):  # type: ignore[no-untyped-def]
        query = whole_jobs().where(jobs.c.workspace_id == g["workspace_id"])
        if paged:
            query = query.where(jobs.c.id < g["id"])
        for name in names:
            if name == "submitted_after":
                query = query.where(requests.c.submitted_at > g["now"])
            else:
                column = jobs.c[name] if name in jobs.c else requests.c[name]
                query = query.where(column == g[name])
        return d.limited(query.order_by(jobs.c.id.desc()), g["limit"])

    fields = ["now" if name == "submitted_after" else name for name in names]
    return Statement(
        build, ("workspace_id", *(["id"] if paged else []), *fields, "limit"), many=False
    )
