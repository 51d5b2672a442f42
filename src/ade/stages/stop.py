"""Stop jobs: at once before they start, by a request to their worker while they run."""

import json
from dataclasses import dataclass

from ade.domain.build import KIND as BUILD
from ade.domain.errors import AdeError, InvalidTransition
from ade.domain.events import EventType, stop_topic
from ade.domain.job import STOPPED_STATUS, WAITING, Cause, Status, StopRequest, is_allowed
from ade.stages import transitions
from ade.stages.agents.status_time import note_status_change
from ade.stages.kernel_settings import KernelSettings
from ade.stages.operator_actions import change_each
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow, LeaseRef, StopRow


@dataclass(frozen=True, slots=True)
class Stop:
    """Cancel or pause a job."""

    ref: JobRef
    request: StopRequest
    by: str
    reason: str | None = None

    def event_data(self) -> dict[str, str]:
        """Return what the event log records of it."""
        return {"by": self.by, **({"reason": self.reason} if self.reason else {})}


def stop(settings: KernelSettings, tx: Transaction, stops: list[Stop]) -> list[JobRow | AdeError]:
    """Stop each job as far as its status allows; repeating a request changes nothing."""
    return change_each(tx, stops, _stop)


def _stop(tx: Transaction, job: JobRow, stop: Stop) -> None:
    status = Status(job.status)
    if job.kind == BUILD and stop.request is StopRequest.PAUSE:
        raise InvalidTransition("A build cannot be interrupted: runs wait for it. Cancel it.")
    if status is Status.RUNNING:
        _request(tx, job, stop)
    elif status is not STOPPED_STATUS[stop.request]:
        _stop_at_once(tx, job, stop)


def _stop_at_once(tx: Transaction, job: JobRow, stop: Stop) -> None:
    status, becomes = Status(job.status), STOPPED_STATUS[stop.request]
    waits = status in WAITING
    cause = Cause.STOPPED_BEFORE_START if waits else Cause.CANCELLED_WHILE_PAUSED
    if not is_allowed(status, becomes, cause):
        verb = "cancelled" if stop.request is StopRequest.CANCEL else "interrupted"
        raise InvalidTransition(f"A job that is {status.value} cannot be {verb}.")
    not_before = job.not_before if becomes is Status.PAUSED else None  # counts when it is resumed
    # What a paused job wrote and left stays when it is cancelled.
    result = None if waits else tx.read_result(JobRef(job.workspace_id, job.id))
    move = transitions.move(
        job,
        becomes,
        cause,
        tx.now_us,
        data=stop.event_data(),
        not_before=not_before,
        result=json.loads(result) if result else None,
    )
    transitions.apply(tx, [move])
    transitions.promote(tx, transitions.lanes_of([job]))


def _request(tx: Transaction, job: JobRow, stop: Stop) -> None:
    """Leave the request for the worker; a request to cancel outweighs one to pause."""
    if job.stop_request in (stop.request, StopRequest.CANCEL):
        return
    lease = LeaseRef(job.workspace_id, job.id, job.fence)
    data = {"attempt": job.fence, "stop": stop.request.value, **stop.event_data()}
    changed = tx.request_stop([StopRow(*lease, stop.request.value)])
    transitions.log(tx, changed, EventType.STOP_REQUESTED, data)
    note_status_change(tx, job)
    tx.notify(stop_topic(job.lease_owner or ""))
