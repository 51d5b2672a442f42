"""Stop jobs: at once before they start, by request to their worker while they run."""

from dataclasses import dataclass

from ade.domain.errors import AdeError, InvalidTransition
from ade.domain.events import EventType
from ade.domain.job import WAITING, Cause, Status, StopRequest, is_allowed
from ade.stages import transitions
from ade.stages.by_hand import change_each
from ade.stages.rules import Rules, stop_topic
from ade.store.port import Transaction
from ade.store.rows import Held, JobRef, JobRow, Move, StopAsk

_BECOMES = {StopRequest.CANCEL: Status.CANCELLED, StopRequest.PAUSE: Status.PAUSED}


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask that a job be cancelled or paused."""

    ref: JobRef
    request: StopRequest
    by: str
    reason: str | None = None

    def told(self) -> dict[str, str]:
        """Return what the event log says of it."""
        return {"by": self.by, **({"reason": self.reason} if self.reason else {})}


def stop(rules: Rules, tx: Transaction, stops: list[Stop]) -> list[JobRow | AdeError]:
    """Stop each job as far as its status allows; asking twice is harmless."""
    return change_each(tx, stops, _stop)


def _stop(tx: Transaction, job: JobRow, ask: Stop) -> None:
    status = Status(job.status)
    if status is Status.RUNNING:
        _request(tx, job, ask)
    elif status is not _BECOMES[ask.request]:
        _move_now(tx, job, ask)


def _move_now(tx: Transaction, job: JobRow, ask: Stop) -> None:
    status, becomes = Status(job.status), _BECOMES[ask.request]
    waits = status in WAITING
    cause = Cause.STOPPED_BEFORE_START if waits else Cause.CANCELLED_WHILE_PAUSED
    if not is_allowed(status, becomes, cause):
        verb = "cancelled" if ask.request is StopRequest.CANCEL else "interrupted"
        raise InvalidTransition(f"A job that is {status.value} cannot be {verb}.")
    kept = job.not_before if becomes is Status.PAUSED else None  # its time still counts
    step: Move = transitions.move(job, becomes, cause, tx.now_us, data=ask.told(), not_before=kept)
    transitions.apply(tx, [step])
    transitions.promote(tx, transitions.lanes_of([job]))


def _request(tx: Transaction, job: JobRow, ask: Stop) -> None:
    """Leave the request for the worker; a wish to cancel outweighs one to pause."""
    if job.stop_request in (ask.request, StopRequest.CANCEL):
        return
    held = Held(job.workspace_id, job.id, job.fence)
    told = {"attempt": job.fence, "stop": ask.request.value, **ask.told()}
    asked = tx.request_stop([StopAsk(*held, ask.request.value)])
    transitions.log(tx, asked, EventType.STOP_REQUESTED, told)
    tx.notify(stop_topic(job.lease_owner or ""))
