"""The types of the events in a job's log, and the topics of notifications.

Each change of status is one event, written in the same transaction as the change, with its cause in
the data. An attempt is what lies between its `job.started` and the event that ended it. The last
group of types is for what workers report while they hold the lease.
"""

from enum import StrEnum

from ade.domain.job import Cause, Status


class EventType(StrEnum):
    """Name what happened to a job."""

    SCHEDULED = "job.pending"
    QUEUED = "job.queued"
    DISPATCHED = "job.dispatched"
    STARTED = "job.started"
    RUNNING = "job.running"
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

_OF_STATUS = {
    Status.PENDING: EventType.SCHEDULED,
    Status.QUEUED: EventType.QUEUED,
    Status.PAUSED: EventType.PAUSED,
    Status.SUCCEEDED: EventType.SUCCEEDED,
    Status.FAILED: EventType.FAILED,
    Status.TIMED_OUT: EventType.TIMED_OUT,
    Status.CANCELLED: EventType.CANCELLED,
}
# These are named after their cause, so that a reader sees why a job waits again.
_OF_CAUSE = {
    (Status.QUEUED, Cause.LEASE_LOST): EventType.LOST,
    (Status.QUEUED, Cause.RETRIED): EventType.RETRIED,
    (Status.QUEUED, Cause.RELEASED): EventType.RELEASED,
    (Status.QUEUED, Cause.RESUMED): EventType.RESUMED,
    (Status.SUCCEEDED, Cause.RESOLVED): EventType.RESOLVED,
}


def event_type(target: Status, cause: Cause) -> EventType:
    """Return the type of the event that records a change to `target`.

    A claim is recorded as `job.started` or `job.dispatched`, which depends on the pool.
    """
    return _OF_CAUSE.get((target, cause)) or _OF_STATUS[target]


# The topics of notifications. That of a job's own events is the job's id.


def output_topic(job_id: str) -> str:
    """Return the topic of what a job writes."""
    return f"output:{job_id}"


def work_topic(pool: str) -> str:
    """Return the topic of jobs that a pool may claim; all pools of agents have one."""
    return f"work:{pool.partition(':')[0]}"


def stop_topic(owner: str) -> str:
    """Return the topic of stop requests to a worker."""
    return f"stop:{owner}"
