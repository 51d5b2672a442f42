"""The statements on builds."""

from sqlalchemy import Update, and_, exists, literal, literal_column, null, or_, select, update
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.store import rows
from ade.store.dialects.base import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import builds, is_held, jobs, requests
from ade.store.sql.clauses import insert_values, same, same_row
from ade.store.sql.statement import Statement

# What a change of a build writes; `fence` is the one that was seen, `new_fence` the one after.
WRITTEN = (
    "status",
    "lease_owner",
    "lease_expires_at",
    "error",
    "started_at",
    "finished_at",
    "environment",
    "losses",
)
NEW = tuple(name for name in rows.Build._fields if name != "fence")
CHANGE = ("workspace_id", "id", "fence", "source", "new_fence", *WRITTEN)


def insert_build(d: Dialect, p: Parameters) -> Executable:
    """Insert a build."""
    values = {name: p[name] for name in NEW}
    return insert_values(p, builds, {**values, "fence": literal_column("0")})


def find_build(d: Dialect, p: Parameters) -> Executable:
    """Find a build by its id."""
    return select(builds).where(same(builds, p, "workspace_id", "id"))


def lock_build(d: Dialect, p: Parameters) -> Executable:
    """Find a build by its id and keep others from changing it."""
    return d.locked(select(builds).where(same(builds, p, "workspace_id", "id")), builds)


def find_build_of(d: Dialect, p: Parameters) -> Executable:
    """Find the one build of a fingerprint."""
    named = same(builds, p, "workspace_id", "configuration_id", "fingerprint")
    return select(builds).where(named)


def next_build(d: Dialect, p: Parameters) -> Executable:
    """Find and lock the oldest build that waits, or whose builder lost its lease."""
    free = or_(
        builds.c.status == "queued",
        and_(builds.c.status == "building", builds.c.lease_expires_at < p["now"]),
    )
    oldest = select(builds).where(free).order_by(builds.c.created_at)
    return d.locked(d.limited(oldest, p["limit"]), builds)


def change_build(d: Dialect, p: Parameters) -> Update:
    """Change a build that still has the status and the fence that were seen."""
    seen = and_(same(builds, p, "workspace_id", "id", "fence"), builds.c.status == p["source"])
    values = {name: p[name] for name in WRITTEN}
    return update(builds).where(seen).values(fence=p["new_fence"], **values)


def list_builds(names: tuple[str, ...]) -> Statement:
    """List builds of a workspace, newest first, that match all filters and are older than one."""

    def build(d: Dialect, p: Parameters) -> Executable:
        older = select(builds).where(same(builds, p, "workspace_id", *names), builds.c.id < p["id"])
        return d.limited(older.order_by(builds.c.id.desc()), p["limit"])

    return Statement(build, ("workspace_id", "id", *names, "limit"), many=False)


def settled_builds_with_waiting_runs(d: Dialect, p: Parameters) -> Executable:
    """Find builds that have ended while runs still wait for them."""
    waiting = exists().where(
        _is_run_of_build(), same_row(), is_held(jobs), jobs.c.not_before.is_(None)
    )
    found = select(builds).where(builds.c.finished_at.is_not(None), waiting)
    return d.limited(found.order_by(builds.c.id), p["limit"])


def environments_in_use(d: Dialect, p: Parameters) -> Executable:
    """List the environments that ready builds refer to."""
    ready = builds.c.environment.is_not(None), builds.c.status == "ready"
    return select(builds.c.environment).where(*ready).distinct()


def needed_builds(d: Dialect, p: Parameters) -> Executable:
    """Find a ready build of an environment that an unfinished job needs."""
    needed = exists().where(_is_run_of_build(), same_row(), jobs.c.finished_at.is_(None))
    found = select(builds.c.id).where(_is_ready_in(p), needed)
    return d.limited(found.order_by(builds.c.id), p["limit"])


def retire_environment(d: Dialect, p: Parameters) -> Update:
    """Cancel the ready builds of an environment: the next run of their versions builds again."""
    retired = {"status": literal("cancelled"), "environment": null()}
    return (
        update(builds)
        .where(_is_ready_in(p))
        .values(error=p["error"], finished_at=p["finished_at"], **retired)
    )


def _is_ready_in(p: Parameters) -> ColumnElement[bool]:
    return and_(same(builds, p, "environment"), builds.c.status == "ready")


def _is_run_of_build() -> ColumnElement[bool]:
    return and_(
        requests.c.workspace_id == builds.c.workspace_id, requests.c.build_id == builds.c.id
    )
