"""The statements on builds and on which versions are active."""

from typing import Any

from sqlalchemy import (
    Select,
    Update,
    and_,
    case,
    exists,
    func,
    literal,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.domain.build import BuildStatus
from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import activations, builds, config_versions, is_running, jobs, requests
from ade.store.sql.clauses import insert_values, same, same_row
from ade.store.sql.statement import Statement

# What a row holds; where an unsettled build is, and since when, is what its job says.
STORED = tuple(builds.c.keys())
OUTCOME = ("status", "error", "environment", "started_at", "finished_at")


def _with_job() -> Select[Any]:
    """Read builds together with the jobs that make them."""
    work = and_(jobs.c.workspace_id == builds.c.workspace_id, jobs.c.id == builds.c.job_id)
    columns = {
        **{name: builds.c[name] for name in STORED},
        "status": _status(),
        "started_at": func.coalesce(builds.c.started_at, jobs.c.started_at),
        "attempt": func.coalesce(jobs.c.fence, literal_column("0")),
    }
    return select(*[columns[name].label(name) for name in rows.Build._fields]).select_from(
        builds.outerjoin(jobs, work)
    )


def _status() -> ColumnElement[str]:
    under_way = and_(builds.c.status == BuildStatus.QUEUED.value, is_running(jobs))
    return case((under_way, literal(BuildStatus.BUILDING.value)), else_=builds.c.status)


def insert_build(d: Dialect, p: Parameters) -> Executable:
    """Insert a build."""
    return insert_values(p, builds, {name: p[name] for name in STORED})


def find_build(d: Dialect, p: Parameters) -> Executable:
    """Find a build by its id."""
    return _with_job().where(same(builds, p, "workspace_id", "id"))


def read_builds(d: Dialect, p: Parameters) -> Executable:
    """Read builds and keep them as they are: a run that joins one must not miss its end."""
    return d.shared(_with_job().where(same(builds, p, "workspace_id", "id")), builds)


def find_build_of_job(d: Dialect, p: Parameters) -> Executable:
    """Find the build that a job makes."""
    return _with_job().where(same(builds, p, "workspace_id", "job_id"))


def find_build_of(d: Dialect, p: Parameters) -> Executable:
    """Find the one build of a fingerprint."""
    return _build_of(p)


def _build_of(p: Parameters) -> Select[Any]:
    return _with_job().where(same(builds, p, "workspace_id", "configuration_id", "fingerprint"))


def hold_build_of(d: Dialect, p: Parameters) -> Executable:
    """Find the one build of a fingerprint and keep it as it is: a run must not miss its end."""
    return d.shared(_build_of(p), builds)


def lock_build_of(d: Dialect, p: Parameters) -> Executable:
    """Find the one build of a fingerprint and lock it, to give it a new job."""
    return d.locked(_build_of(p), builds)


def builds_of_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find and lock the builds that jobs do the work of."""
    made_by = and_(builds.c.workspace_id == p["workspace_id"], builds.c.job_id == p["id"])
    unsettled = builds.c.status == BuildStatus.QUEUED.value
    return d.locked(_with_job().where(made_by, unsettled), builds)


def queue_build(d: Dialect, p: Parameters) -> Update:
    """Give a build that is not being made a job, and forget what became of it before."""
    cleared = {name: null() for name in ("error", "environment", "started_at", "finished_at")}
    return (
        update(builds)
        .where(same(builds, p, "workspace_id", "id"), builds.c.status == p["source"])
        .values(
            status=literal(BuildStatus.QUEUED.value),
            job_id=p["job_id"],
            version_id=p["version_id"],
            **cleared,
        )
    )


def settle_build(d: Dialect, p: Parameters) -> Update:
    """Record what became of a build; only for the job that was to make it."""
    return (
        update(builds)
        .where(
            same(builds, p, "workspace_id", "id"),
            builds.c.status == BuildStatus.QUEUED.value,
            builds.c.job_id == p["job_id"],
        )
        .values({name: p[name] for name in OUTCOME})
    )


def list_builds(names: tuple[str, ...]) -> Statement:
    """List builds of a workspace, newest first, that match all filters and are older than one."""

    def build(d: Dialect, p: Parameters) -> Executable:
        plain = [name for name in names if name != "status"]
        older = _with_job().where(same(builds, p, "workspace_id", *plain), builds.c.id < p["id"])
        if "status" in names:
            older = older.where(_status() == p["status"])
        return d.limited(older.order_by(builds.c.id.desc()), p["limit"])

    return Statement(build, ("workspace_id", "id", *names, "limit"), many=False)


def environments_in_use(d: Dialect, p: Parameters) -> Executable:
    """List the environments that ready builds refer to."""
    ready = builds.c.environment.is_not(None), builds.c.status == BuildStatus.READY.value
    return select(builds.c.environment).where(*ready).distinct()


def needed_builds(d: Dialect, p: Parameters) -> Executable:
    """Find a ready build of an environment that an unfinished job needs."""
    needed = exists().where(_is_run_of_build(), same_row(), jobs.c.finished_at.is_(None))
    found = select(builds.c.id).where(_is_ready_in(p), needed)
    return d.limited(found.order_by(builds.c.id), p["limit"])


def retire_environment(d: Dialect, p: Parameters) -> Update:
    """Cancel the ready builds of an environment: the next run of their versions builds again."""
    retired = {"status": literal(BuildStatus.CANCELLED.value), "environment": null()}
    return (
        update(builds)
        .where(_is_ready_in(p))
        .values(error=p["error"], finished_at=p["finished_at"], **retired)
    )


def versions_of_builds(d: Dialect, p: Parameters) -> Executable:
    """Name the versions that builds were made of."""
    of_build = and_(
        config_versions.c.workspace_id == builds.c.workspace_id,
        config_versions.c.id == builds.c.version_id,
    )
    return (
        select(
            builds.c.id,
            config_versions.c.id,
            config_versions.c.sequence,
            config_versions.c.digest,
        )
        .select_from(builds.join(config_versions, of_build))
        .where(same(builds, p, "workspace_id", "id"))
    )


# --- active versions ------------------------------------------------------------------------------


def find_activation(d: Dialect, p: Parameters) -> Executable:
    """Find which version of a configuration is active, and which one is to become it."""
    return select(activations).where(same(activations, p, "workspace_id", "configuration_id"))


def lock_activation(d: Dialect, p: Parameters) -> Executable:
    """Find which version of a configuration is active, and keep others from changing it."""
    named = same(activations, p, "workspace_id", "configuration_id")
    return d.locked(select(activations).where(named), activations)


def insert_activation(d: Dialect, p: Parameters) -> Executable:
    """Insert which version of a configuration is active, or is to become it."""
    return insert_values(p, activations, {name: p[name] for name in rows.Activation._fields})


def change_activation(d: Dialect, p: Parameters) -> Update:
    """Change which version of a configuration is active, or is to become it."""
    key = ("workspace_id", "configuration_id")
    values = {name: p[name] for name in rows.Activation._fields if name not in key}
    return update(activations).where(same(activations, p, *key)).values(values)


def _is_ready_in(p: Parameters) -> ColumnElement[bool]:
    return and_(same(builds, p, "environment"), builds.c.status == BuildStatus.READY.value)


def _is_run_of_build() -> ColumnElement[bool]:
    return and_(
        requests.c.workspace_id == builds.c.workspace_id, requests.c.build_id == builds.c.id
    )
