"""Reopen jobs by a person's decision: resume, resolve and clear."""

from dataclasses import dataclass
from typing import Any

from ade.domain.build import KIND as BUILD
from ade.domain.errors import AdeError, InvalidTransition
from ade.domain.events import EventType, work_topic
from ade.domain.job import BLOCKS_ITS_LANE, Cause, Status, is_allowed
from ade.stages import transitions
from ade.stages.builds import settled_builds
from ade.stages.kernel_settings import KernelSettings
from ade.stages.operator_actions import change_each
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow, LeaseRef


@dataclass(frozen=True, slots=True)
class Resume:
    """Queue a stopped job again; only an operator may do so for a failed job without a target."""

    ref: JobRef
    by: str
    operator: bool = False


@dataclass(frozen=True, slots=True)
class Resolve:
    """Count a stopped job as succeeded, with a result that a person gives."""

    ref: JobRef
    by: str
    result: dict[str, Any]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    """Let a stopped job no longer hold its lane."""

    ref: JobRef
    by: str
    note: str | None = None


def resume(
    settings: KernelSettings, tx: Transaction, requests: list[Resume]
) -> list[JobRow | AdeError]:
    """Queue paused jobs again, and failed ones of a target; their order is by rank, as before."""
    return change_each(tx, requests, _resume)


def resolve(
    settings: KernelSettings, tx: Transaction, requests: list[Resolve]
) -> list[JobRow | AdeError]:
    """Record results that people found, and free their lanes."""
    return change_each(tx, requests, _resolve)


def clear(
    settings: KernelSettings, tx: Transaction, requests: list[Clear]
) -> list[JobRow | AdeError]:
    """Free lanes without a result."""
    return change_each(tx, requests, _clear)


def _resume(tx: Transaction, job: JobRow, request: Resume) -> None:
    status = Status(job.status)
    if status in (Status.FAILED, Status.TIMED_OUT) and not (job.target_id or request.operator):
        raise InvalidTransition(
            f"A job that is {status.value} is resumed only on a target; run it again instead."
        )
    if not is_allowed(status, Status.QUEUED, Cause.RESUMED):
        raise InvalidTransition(f"A job that is {status.value} cannot be resumed.")
    if job.kind == BUILD and status is not Status.PAUSED:
        raise InvalidTransition("A build that failed is made again by activating its version.")
    on_lane = job.target_id is not None
    settled = settled_builds(tx, [(job.workspace_id, job.build_id)])
    early = job.not_before is not None and job.not_before > tx.now_us
    ready = not early and settled.lets_start(job.build_id)
    move = transitions.move(
        job,
        Status.QUEUED,
        Cause.RESUMED,
        tx.now_us,
        data={"by": request.by},
        eligible=ready and not on_lane,
        not_before=job.not_before if early else None,
    )
    transitions.apply(tx, [move])
    for build in settled.unusable:
        transitions.release_runs(tx, build)
    if on_lane:
        transitions.promote(tx, transitions.lanes_of([job]))
    else:
        tx.notify(work_topic(job.pool))


def _resolve(tx: Transaction, job: JobRow, request: Resolve) -> None:
    if not is_allowed(Status(job.status), Status.SUCCEEDED, Cause.RESOLVED):
        raise InvalidTransition(f"A job that is {job.status} cannot be resolved.")
    if job.kind == BUILD:
        raise InvalidTransition("A build cannot be resolved: its packages must be installed.")
    move = transitions.move(
        job,
        Status.SUCCEEDED,
        Cause.RESOLVED,
        tx.now_us,
        data=_event_data(request),
        # The result says that it was not computed.
        result={**request.result, "resolved": {**_event_data(request), "at_us": tx.now_us}},
    )
    transitions.apply(tx, [move])
    transitions.promote(tx, transitions.lanes_of([job]))


def _clear(tx: Transaction, job: JobRow, request: Clear) -> None:
    if not job.holds_lane or Status(job.status) not in BLOCKS_ITS_LANE:
        raise InvalidTransition("The job does not block its target; there is nothing to clear.")
    cleared = tx.clear_lane(LeaseRef(job.workspace_id, job.id, job.fence), job.status)
    transitions.log(tx, cleared, EventType.CLEARED, _event_data(request))
    transitions.promote(tx, transitions.lanes_of([job]))


def _event_data(request: Resolve | Clear) -> dict[str, str]:
    return {"by": request.by, **({"note": request.note} if request.note else {})}
