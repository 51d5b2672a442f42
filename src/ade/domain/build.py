"""What a build is: its statuses, how they follow from its job, and why one is of no use.

A build's row holds what became of the work; while the work has not ended, the job says where it is.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ade.domain.job import Status
from ade.domain.outcome import Category, JobError

KIND = "build"
BUILD_FAILED = "BUILD_FAILED"  # the error code of a run whose build is of no use
CANCELLED_REASON = "the build was cancelled."


class BuildStatus(StrEnum):
    """Name where a build is; the last three are settled."""

    QUEUED = "queued"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


SETTLED = frozenset({BuildStatus.READY, BuildStatus.FAILED, BuildStatus.CANCELLED})
# How the end of a job settles its build. A paused job has not ended.
SETTLED_BY = {
    Status.SUCCEEDED: BuildStatus.READY,
    Status.FAILED: BuildStatus.FAILED,
    Status.TIMED_OUT: BuildStatus.FAILED,
    Status.CANCELLED: BuildStatus.CANCELLED,
}


def build_error(job_error: str | None, attempts: int) -> str:
    """Return the error of a build whose job failed, in words about builds."""
    error = json.loads(job_error) if job_error is not None else {}
    if error and error["code"] != "LEASE_LOST":
        return json.dumps(error)
    message = (
        f"The build was started {attempts} times, and each time the process that made it died or"
        " stopped answering. Most often the machine ran out of memory: the log of the build and"
        " that of the machine say more."
    )
    return json.dumps(JobError(Category.INTERNAL_ERROR, "BUILDER_LOST", message).as_dict())


def environment_made(result: Mapping[str, Any] | None) -> str | None:
    """Return which environment the result of a build's job names, if it names one."""
    outputs = (result or {}).get("outputs")
    report = outputs.get("result_json") if isinstance(outputs, dict) else None
    made = report.get("environment") if isinstance(report, dict) else None
    return made if isinstance(made, str) else None


def is_remembered(error: str | None) -> bool:
    """Tell whether a failure is the configuration's own, so that another try would fail too."""
    return error is not None and json.loads(error)["category"] != Category.INTERNAL_ERROR


def failure_reason(status: str, error: str | None) -> str | None:
    """Return why a settled build is of no use; None if it is ready."""
    if status == BuildStatus.READY:
        return None
    return str(json.loads(error)["message"]) if error else CANCELLED_REASON
