"""The statements that find rows which contradict each other, and those that repair some of them.

Each query returns the workspace and the identifier of what is wrong. Each repair names one row and
carries the condition again: a row that has been put right meanwhile is left alone.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Delete,
    Select,
    Update,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.domain.build import BuildStatus
from ade.domain.job import TERMINAL
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    activations,
    artifacts,
    builds,
    config_versions,
    events,
    executions,
    holds_its_lane,
    is_eligible,
    is_queued,
    is_running,
    jobs,
    output_batches,
    requests,
)
from ade.store.sql.clauses import same_job, same_row
from ade.store.sql.job_counts import wrong_counters

Rows = Select[Any]
LOST_KIND = "lost"
LOST_LIMITS = (
    '{"timeout_ms": 60000, "cpu_ms": 60000, "memory_mb": 512, "max_output_kb": 256,'
    ' "max_artifacts": 0}'
)
RANK_OFFSET = 1 << 60


def _jobs_where(*conditions: ColumnElement[bool]) -> Rows:
    return select(jobs.c.workspace_id, jobs.c.id).where(*conditions)


def _has_no_request() -> ColumnElement[bool]:
    return ~exists().where(same_row())


def _has_no_job(workspace_id: ColumnElement[Any], job_id: ColumnElement[Any]) -> Any:
    job = jobs.alias("job")
    return ~exists().where(job.c.workspace_id == workspace_id, job.c.id == job_id)


def _is_one_of(status: ColumnElement[str], values: Iterable[StrEnum]) -> ColumnElement[bool]:
    return or_(*[status == literal_column(f"'{value.value}'") for value in sorted(values)])


def _build_is(*statuses: BuildStatus) -> ColumnElement[bool]:
    """Match jobs whose build has one of these statuses."""
    build, request = builds.alias("build"), requests.alias("request")
    return exists().where(
        request.c.workspace_id == jobs.c.workspace_id,
        request.c.id == jobs.c.id,
        build.c.workspace_id == request.c.workspace_id,
        build.c.id == request.c.build_id,
        _is_one_of(build.c.status, statuses),
    )


def _has_build() -> ColumnElement[bool]:
    request = requests.alias("with_build")
    return exists().where(
        request.c.workspace_id == jobs.c.workspace_id,
        request.c.id == jobs.c.id,
        request.c.build_id.is_not(None),
    )


def _waits_for_nothing() -> ColumnElement[bool]:
    """Match queued jobs that nothing will ever make eligible."""
    settled = (BuildStatus.READY, BuildStatus.FAILED, BuildStatus.CANCELLED)
    return and_(
        is_queued(jobs),
        jobs.c.eligible == literal_column("0"),
        jobs.c.not_before.is_(None),
        jobs.c.needs_kind.is_(None),
        or_(jobs.c.target_id.is_(None), holds_its_lane(jobs)),
        or_(~_has_build(), _build_is(*settled)),
    )


def _is_eligible_too_early() -> ColumnElement[bool]:
    return and_(
        is_eligible(jobs), or_(jobs.c.not_before.is_not(None), _build_is(BuildStatus.QUEUED))
    )


def _is_live(job: FromClause) -> ColumnElement[bool]:
    return or_(is_eligible(job), is_running(job))


def _is_second_in_lane() -> ColumnElement[bool]:
    """Match eligible jobs of a lane that has another live job, which is running or comes first."""
    other = jobs.alias("other")
    comes_first = or_(
        is_running(other),
        other.c.rank < jobs.c.rank,
        and_(other.c.rank == jobs.c.rank, other.c.id < jobs.c.id),
    )
    return and_(
        is_eligible(jobs),
        jobs.c.target_id.is_not(None),
        exists().where(
            other.c.workspace_id == jobs.c.workspace_id,
            other.c.target_id == jobs.c.target_id,
            other.c.id != jobs.c.id,
            _is_live(other),
            comes_first,
        ),
    )


def _waits_for_wrong_kind() -> ColumnElement[bool]:
    request = requests.alias("request")
    return exists().where(
        request.c.workspace_id == jobs.c.workspace_id,
        request.c.id == jobs.c.id,
        jobs.c.needs_kind != request.c.kind,
    )


def _is_stalled() -> ColumnElement[bool]:
    holder = jobs.alias("holder")
    return and_(
        is_queued(jobs),
        jobs.c.target_id.is_not(None),
        jobs.c.not_before.is_(None),
        ~exists().where(
            holder.c.workspace_id == jobs.c.workspace_id,
            holder.c.target_id == jobs.c.target_id,
            holds_its_lane(holder),
        ),
    )


def _waits_for_missing_job() -> ColumnElement[bool]:
    return and_(
        builds.c.status == BuildStatus.QUEUED.value,
        _has_no_job(builds.c.workspace_id, builds.c.job_id),
    )


def _waits_for_ended_job() -> ColumnElement[bool]:
    job = jobs.alias("job")
    ended = exists().where(
        job.c.workspace_id == builds.c.workspace_id,
        job.c.id == builds.c.job_id,
        _is_one_of(job.c.status, TERMINAL),
    )
    return and_(builds.c.status == BuildStatus.QUEUED.value, ended)


def _waits_for_no_build() -> ColumnElement[bool]:
    """Match activations that wait for a version which no build is being made of."""
    build = builds.alias("build")
    return and_(
        activations.c.pending_version_id.is_not(None),
        ~exists().where(
            build.c.workspace_id == activations.c.workspace_id,
            build.c.version_id == activations.c.pending_version_id,
            build.c.status == BuildStatus.QUEUED.value,
        ),
    )


def _names_foreign_version() -> ColumnElement[bool]:
    version = config_versions.alias("version")
    return exists().where(
        version.c.workspace_id == activations.c.workspace_id,
        or_(
            version.c.id == activations.c.version_id,
            version.c.id == activations.c.pending_version_id,
        ),
        version.c.configuration_id != activations.c.configuration_id,
    )


def _is_registered_for_no_job() -> ColumnElement[bool]:
    job = jobs.alias("job")
    return executions.c.job_id.not_in(select(job.c.id))


def _of_activation(condition: ColumnElement[bool]) -> Rows:
    named = activations.c.workspace_id, activations.c.configuration_id.label("id")
    return select(*named).where(condition)


def _orphans(table: FromClause) -> Rows:
    """Name the jobs that do not exist and that rows of a table belong to."""
    named = table.c.workspace_id, table.c.job_id.label("id")
    return select(*named).where(_has_no_job(*table.c["workspace_id", "job_id"])).distinct()


def _of_builds(condition: ColumnElement[bool]) -> Rows:
    return select(builds.c.workspace_id, builds.c.id).where(condition)


FINDS: dict[str, Callable[[], Rows]] = {
    "job_without_request": lambda: _jobs_where(_has_no_request()),
    "request_without_job": lambda: select(requests.c.workspace_id, requests.c.id).where(
        _has_no_job(requests.c.workspace_id, requests.c.id)
    ),
    "second_live_job_in_lane": lambda: _jobs_where(_is_second_in_lane()),
    "eligible_too_early": lambda: _jobs_where(_is_eligible_too_early()),
    "waits_for_nothing": lambda: _jobs_where(_waits_for_nothing()),
    "waits_for_wrong_kind": lambda: _jobs_where(_waits_for_wrong_kind()),
    "lane_stands_still": lambda: _jobs_where(_is_stalled()),
    "build_without_job": lambda: _of_builds(_waits_for_missing_job()),
    "build_not_settled": lambda: _of_builds(_waits_for_ended_job()),
    "activation_without_build": lambda: _of_activation(_waits_for_no_build()),
    "activation_of_other_configuration": lambda: _of_activation(_names_foreign_version()),
    "execution_without_job": lambda: select(
        executions.c.job_id.label("workspace_id"), executions.c.work_id.label("id")
    ).where(_is_registered_for_no_job()),
    "artifact_without_job": lambda: _orphans(artifacts),
    "events_without_job": lambda: _orphans(events),
    "output_without_job": lambda: _orphans(output_batches),
    "counts_differ": wrong_counters,
}


def find(name: str) -> Callable[[Dialect, Parameters], Executable]:
    """List what is wrong in one way, in order, after a place and up to a number."""
    return lambda d, p: d.limited(
        FINDS[name]().order_by(literal_column("1"), literal_column("2")), p["limit"]
    )


def count(name: str) -> Callable[[Dialect, Parameters], Executable]:
    """Count what is wrong in one way."""
    return lambda d, p: select(func.count()).select_from(FINDS[name]().subquery())


def _change_job(p: Parameters, condition: ColumnElement[bool], **values: Any) -> Update:
    return update(jobs).where(same_job(jobs, p), condition).values(**values)


def _give_request(p: Parameters) -> Executable:
    """Give a job a request that no worker runs, so that it can be seen and cancelled."""
    values = {
        "workspace_id": jobs.c.workspace_id,
        "id": jobs.c.id,
        "kind": literal(LOST_KIND),
        "priority": literal("normal"),
        "submitted_by": literal("ade db check"),
        "submitted_at": case(
            (jobs.c.rank < 0, jobs.c.rank + literal(RANK_OFFSET)), else_=jobs.c.rank
        ),
        "limits": literal(LOST_LIMITS),
        "payload": literal('{"job_type": "lost", "inputs": {}}'),
    }
    source = select(*[value.label(name) for name, value in values.items()])
    return insert(requests).from_select(
        list(values), source.where(same_job(jobs, p), _has_no_request())
    )


def _delete_orphans(p: Parameters, table: Any) -> Delete:
    return delete(table).where(
        table.c.workspace_id == p["workspace_id"],
        table.c.job_id == p["id"],
        _has_no_job(table.c.workspace_id, table.c.job_id),
    )


def _cancel_build(p: Parameters) -> Update:
    named = builds.c.workspace_id == p["workspace_id"], builds.c.id == p["id"]
    return (
        update(builds)
        .where(*named, _waits_for_missing_job())
        .values(status=BuildStatus.CANCELLED.value, finished_at=p["now"])
    )


def _give_up_activation(p: Parameters) -> Update:
    named = (
        activations.c.workspace_id == p["workspace_id"],
        activations.c.configuration_id == p["id"],
    )
    nothing = {"pending_version_id": null(), "pending_by": null()}
    return update(activations).where(*named, _waits_for_no_build()).values(**nothing)


def _forget_execution(p: Parameters) -> Delete:
    return delete(executions).where(
        executions.c.work_id == p["id"],
        executions.c.job_id == p["workspace_id"],
        _is_registered_for_no_job(),
    )


_ZERO: ColumnElement[int] = literal_column("0")
# A job whose time has come is looked at again by the next sweep, which decides with locks and logs.
_DUE = {"not_before": _ZERO, "needs_kind": null(), "eligible": _ZERO}
REPAIRS: dict[str, Callable[[Parameters], Executable]] = {
    "job_without_request": _give_request,
    "second_live_job_in_lane": lambda p: _change_job(
        p, _is_second_in_lane(), eligible=_ZERO, holds_lane=_ZERO
    ),
    "eligible_too_early": lambda p: _change_job(p, _is_eligible_too_early(), eligible=_ZERO),
    "waits_for_nothing": lambda p: _change_job(p, _waits_for_nothing(), **_DUE),
    "waits_for_wrong_kind": lambda p: _change_job(p, _waits_for_wrong_kind(), **_DUE),
    "build_without_job": _cancel_build,
    "activation_without_build": _give_up_activation,
    "execution_without_job": _forget_execution,
    "artifact_without_job": lambda p: _delete_orphans(p, artifacts),
    "events_without_job": lambda p: _delete_orphans(p, events),
    "output_without_job": lambda p: _delete_orphans(p, output_batches),
}


def repair(name: str) -> Callable[[Dialect, Parameters], Executable]:
    """Repair one row, if it is still wrong."""
    return lambda d, p: REPAIRS[name](p)


def jobs_after(d: Dialect, p: Parameters) -> Executable:
    """Read jobs in the order of their keys, with what their logs hold."""
    counted = (
        select(func.count())
        .select_from(events)
        .where(events.c.workspace_id == jobs.c.workspace_id, events.c.job_id == jobs.c.id)
        .correlate(jobs)
        .scalar_subquery()
    )
    later = or_(
        jobs.c.workspace_id > p["workspace_id"],
        and_(jobs.c.workspace_id == p["workspace_id"], jobs.c.id > p["id"]),
    )
    return d.limited(
        select(jobs.c.workspace_id, jobs.c.id, jobs.c.event_seq, jobs.c.history, counted)
        .where(later)
        .order_by(jobs.c.workspace_id, jobs.c.id),
        p["limit"],
    )


def artifacts_after(d: Dialect, p: Parameters) -> Executable:
    """Read artifacts in the order of their keys."""
    later = or_(
        artifacts.c.workspace_id > p["workspace_id"],
        and_(artifacts.c.workspace_id == p["workspace_id"], artifacts.c.id > p["id"]),
    )
    return d.limited(
        select(artifacts.c.workspace_id, artifacts.c.id, artifacts.c.digest)
        .where(later)
        .order_by(artifacts.c.workspace_id, artifacts.c.id),
        p["limit"],
    )
