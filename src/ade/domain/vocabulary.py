"""The status words of each API: pure functions of (status, facts)."""

from enum import StrEnum

from ade.domain.job import Status, StopRequest


class RunStatus(StrEnum):
    """Name where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ResultStatus(StrEnum):
    """Name how a job of the execution contract ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"


class AgentStatus(StrEnum):
    """Name where a job is, in the words of the worker contract."""

    LAUNCHING = "launching"
    QUEUED = "queued"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    STOP_REQUESTED = "stop_requested"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELED = "canceled"
    NOT_FOUND = "not_found"
    UNKNOWN = "unknown"


_RUN = {Status.PENDING: "queued", Status.TIMED_OUT: "failed", Status.PAUSED: "queued"}
_AGENT = {
    Status.PENDING: AgentStatus.QUEUED,
    Status.QUEUED: AgentStatus.QUEUED,
    Status.PAUSED: AgentStatus.STOPPED,
    Status.SUCCEEDED: AgentStatus.FINISHED,
    Status.FAILED: AgentStatus.FAILED,
    Status.TIMED_OUT: AgentStatus.FAILED,
}


def run_status(status: Status) -> RunStatus:
    """Return the status of a run: `queued running succeeded failed cancelled`."""
    return RunStatus(_RUN.get(status, status.value))


def statuses_of_run(status: RunStatus) -> list[Status]:
    """Return the statuses of jobs that a run shows as this one."""
    return [one for one in Status if run_status(one) is status]


def contract_status(status: Status) -> str:
    """Return the status in the execution contract: ADE's own words in capitals."""
    return status.value.upper()


def agent_status(
    status: Status | None,
    *,
    started: bool = False,
    ever_started: bool = False,
    stop_request: StopRequest | None = None,
) -> AgentStatus:
    """Return the status that an agent reads; None is a job that does not exist.

    `started` distinguishes a running job from a dispatched one; `ever_started` distinguishes a job
    that was stopped from one that was cancelled before it began.
    """
    if status is None:
        return AgentStatus.NOT_FOUND
    if status is Status.RUNNING:
        if stop_request is not None:
            return AgentStatus.STOP_REQUESTED
        return AgentStatus.RUNNING if started else AgentStatus.DISPATCHED
    if status is Status.CANCELLED:
        return AgentStatus.STOPPED if ever_started else AgentStatus.CANCELED
    return _AGENT[status]
