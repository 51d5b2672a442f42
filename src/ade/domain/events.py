"""The words of a job's event log.

Each change of status is one event, written in the same transaction as the change; an attempt is
what lies between its `job.started` and the event that ended it. Workers add the last group.
"""

from enum import StrEnum

from ade.domain.job import Status


class EventType(StrEnum):
    """Name what happened to a job."""

    SCHEDULED = "job.pending"
    QUEUED = "job.queued"
    DISPATCHED = "job.dispatched"
    STARTED = "job.started"
    PAUSED = "job.paused"
    SUCCEEDED = "job.succeeded"
    FAILED = "job.failed"
    TIMED_OUT = "job.timed_out"
    CANCELLED = "job.cancelled"
    LOST = "job.lost"
    RETRIED = "job.retried"
    RELEASED = "job.released"
    RESUMED = "job.resumed"
    RESOLVED = "job.resolved"
    CLEARED = "job.cleared"
    STOP_REQUESTED = "job.stop_requested"
    FORCED = "job.forced"

    PROGRESS = "worker.progress"
    LOG = "worker.log"
    NOTE = "worker.note"
    TRUNCATED = "events.truncated"


STARTS_ATTEMPT = frozenset({EventType.STARTED, EventType.DISPATCHED})
ENDS_ATTEMPT = frozenset(
    {
        EventType.SUCCEEDED,
        EventType.FAILED,
        EventType.TIMED_OUT,
        EventType.CANCELLED,
        EventType.PAUSED,
        EventType.LOST,
        EventType.RETRIED,
        EventType.RELEASED,
    }
)
SENT_BY_WORKERS = frozenset({EventType.PROGRESS, EventType.LOG, EventType.NOTE})

OF_STATUS = {
    Status.PENDING: EventType.SCHEDULED,
    Status.QUEUED: EventType.QUEUED,
    Status.PAUSED: EventType.PAUSED,
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.TIMED_OUT: EventType.TIMED_OUT,
    Status.CANCELLED: EventType.CANCELLED,
}
