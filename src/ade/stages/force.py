"""Change a job by an operator's decision: queue it again, fail it or cancel it.

Without `force` only what cannot make a job run twice is allowed. With it the job changes at once,
whoever holds it: the holder's later reports carry an old fence, or come from an agent that no
longer holds the job, and are refused. Its code may still run, beside the next attempt.
"""

from dataclasses import dataclass
from enum import StrEnum

from ade.domain.build import KIND as BUILD
from ade.domain.errors import AdeError, InvalidTransition
from ade.domain.events import stop_topic
from ade.domain.job import BLOCKS_ITS_LANE, TERMINAL, WAITING, Cause, Status, is_allowed
from ade.domain.outcome import Category, JobError
from ade.stages import transitions
from ade.stages.agents.status_time import note_status_change
from ade.stages.kernel_settings import KernelSettings
from ade.stages.operator_actions import change_each
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow, Move


class OperatorAction(StrEnum):
    """Name what an operator does to a job."""

    REQUEUE = "requeue"
    FAIL = "fail"
    CANCEL = "cancel"


_BECOMES = {
    OperatorAction.REQUEUE: Status.QUEUED,
    OperatorAction.FAIL: Status.FAILED,
    OperatorAction.CANCEL: Status.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Force:
    """Ask for an operator's action on a job."""

    ref: JobRef
    action: OperatorAction
    by: str
    reason: str | None = None
    force: bool = False


def force(
    settings: KernelSettings, tx: Transaction, requests: list[Force]
) -> list[JobRow | AdeError]:
    """Carry out operators' decisions."""
    return change_each(tx, requests, _force)


def _force(tx: Transaction, job: JobRow, request: Force) -> None:
    status, becomes = Status(job.status), _BECOMES[request.action]
    if status is becomes:
        return
    if job.kind == BUILD:
        raise InvalidTransition("A build is cancelled, or made again by activating its version.")
    if not request.force:
        _check_allowed(job, request)
    move = _move(job, becomes, request, tx.now_us)
    transitions.apply(tx, [move])
    note_status_change(tx, job)
    if job.lease_owner:
        tx.notify(stop_topic(job.lease_owner))
    transitions.notify_claimers(tx, [move], [job])
    transitions.promote(tx, transitions.lanes_of([job]))


def _check_allowed(job: JobRow, request: Force) -> None:
    """Raise InvalidTransition if the action could lose a result or run the job twice."""
    status = Status(job.status)
    runs = status is Status.RUNNING and job.started_at is not None
    allowed = {
        OperatorAction.REQUEUE: not runs and status is not Status.SUCCEEDED,
        OperatorAction.FAIL: status not in TERMINAL,
        OperatorAction.CANCEL: status in WAITING or status is Status.PAUSED,
    }[request.action]
    if not allowed:
        hint = " Stop it first, or use force=true." if runs else " Use force=true to do it anyway."
        now = "running" if runs else status.value
        raise InvalidTransition(f"{request.action}: the job is {now}.{hint}")


def _move(job: JobRow, becomes: Status, request: Force, now_us: int) -> Move:
    data = {"by": request.by, "forced": request.force}
    if request.reason:
        data["reason"] = request.reason
    error = None
    if becomes is Status.FAILED:
        why = f": {request.reason}" if request.reason else "."
        message = f"An operator marked the job as failed{why}"
        error = JobError(Category.INTERNAL_ERROR, "FAILED_BY_OPERATOR", message)
    return transitions.move(
        job,
        becomes,
        _cause(job, becomes),
        now_us,
        data=data,
        error=error,
        eligible=becomes is Status.QUEUED and job.target_id is None,
        holds_lane=becomes in BLOCKS_ITS_LANE,
    )


def _cause(job: JobRow, becomes: Status) -> Cause:
    """Return the cause that the table has for an operator's change, or that it was forced."""
    status = Status(job.status)
    for cause in (Cause.RESUMED, Cause.STOPPED_BEFORE_START, Cause.CANCELLED_WHILE_PAUSED):
        if is_allowed(status, becomes, cause):
            return cause
    return Cause.FORCED
