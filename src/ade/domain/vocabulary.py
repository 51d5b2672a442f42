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


_RUN = {Status.PENDING: "queued", Status.TIMED_OUT: "failed", Status.PAUSED: "queued"}
_AGENT = {
    Status.PENDING: "queued",
    Status.QUEUED: "queued",
    Status.PAUSED: "stopped",
    Status.SUCCEEDED: "finished",
    Status.FAILED: "failed",
    Status.TIMED_OUT: "failed",
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
) -> str:
    """Return the status that an agent reads; None is a job that does not exist.

    `started` distinguishes a running job from a dispatched one; `ever_started` distinguishes a job
    that was stopped from one that was cancelled before it began.
    """
    if status is None:
        return "not_found"
    if status is Status.RUNNING:
        if stop_request is not None:
            return "stop_requested"
        return "running" if started else "dispatched"
    if status is Status.CANCELLED:
        return "stopped" if ever_started else "canceled"
    return _AGENT[status]
