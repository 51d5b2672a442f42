"""Open jobs again: resume, resolve and clear, by a person who decides."""

from dataclasses import dataclass
from typing import Any

from ade.domain.errors import AdeError, InvalidTransition
from ade.domain.events import EventType
from ade.domain.job import BLOCKS_ITS_LANE, Cause, Status, is_allowed
from ade.stages import transitions
from ade.stages.by_hand import change_each
from ade.stages.place import settled_builds
from ade.stages.rules import Rules, work_topic
from ade.store.port import Transaction
from ade.store.rows import Held, JobRef, JobRow


@dataclass(frozen=True, slots=True)
class Resume:
    """Ask that a stopped job wait again; an operator may do it off a target as well."""

    ref: JobRef
    by: str
    operator: bool = False


@dataclass(frozen=True, slots=True)
class Resolve:
    """Ask that a stopped job count as succeeded, with a result that a person gives."""

    ref: JobRef
    by: str
    result: dict[str, Any]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    """Ask that a stopped job no longer hold its lane."""

    ref: JobRef
    by: str
    note: str | None = None


def resume(rules: Rules, tx: Transaction, asks: list[Resume]) -> list[JobRow | AdeError]:
    """Queue paused jobs again, and failed ones of a target; its own turn comes by rank."""
    return change_each(tx, asks, _resume)


def resolve(rules: Rules, tx: Transaction, asks: list[Resolve]) -> list[JobRow | AdeError]:
    """Record results that people found, and free their lanes."""
    return change_each(tx, asks, _resolve)


def clear(rules: Rules, tx: Transaction, asks: list[Clear]) -> list[JobRow | AdeError]:
    """Free lanes without a result."""
    return change_each(tx, asks, _clear)


def _resume(tx: Transaction, job: JobRow, ask: Resume) -> None:
    status = Status(job.status)
    if status in (Status.FAILED, Status.TIMED_OUT) and not (job.target_id or ask.operator):
        raise InvalidTransition(
            f"A job that is {status.value} is resumed only on a target; run it again instead."
        )
    if not is_allowed(status, Status.QUEUED, Cause.RESUMED):
        raise InvalidTransition(f"A job that is {status.value} cannot be resumed.")
    on_lane = job.target_id is not None
    settled = settled_builds(tx, [(job.workspace_id, job.build_id)])
    early = job.not_before is not None and job.not_before > tx.now_us
    ready = not early and (job.build_id is None or job.build_id in settled)
    step = transitions.move(
        job,
        Status.QUEUED,
        Cause.RESUMED,
        tx.now_us,
        data={"by": ask.by},
        eligible=ready and not on_lane,
        not_before=job.not_before if early else None,
    )
    transitions.apply(tx, [step])
    if on_lane:
        transitions.promote(tx, transitions.lanes_of([job]))
    else:
        tx.notify(work_topic(job.pool))


def _resolve(tx: Transaction, job: JobRow, ask: Resolve) -> None:
    if not is_allowed(Status(job.status), Status.SUCCEEDED, Cause.RESOLVED):
        raise InvalidTransition(f"A job that is {job.status} cannot be resolved.")
    step = transitions.move(
        job,
        Status.SUCCEEDED,
        Cause.RESOLVED,
        tx.now_us,
        data=_told(ask),
        result=ask.result,
    )
    transitions.apply(tx, [step])
    transitions.promote(tx, transitions.lanes_of([job]))


def _clear(tx: Transaction, job: JobRow, ask: Clear) -> None:
    if not job.holds_lane or Status(job.status) not in BLOCKS_ITS_LANE:
        raise InvalidTransition("The job does not hold its target back; nothing to clear.")
    cleared = tx.clear_lane(Held(job.workspace_id, job.id, job.fence), job.status)
    transitions.log(tx, cleared, EventType.CLEARED, _told(ask))
    transitions.promote(tx, transitions.lanes_of([job]))


def _told(ask: Resolve | Clear) -> dict[str, str]:
    return {"by": ask.by, **({"note": ask.note} if ask.note else {})}
