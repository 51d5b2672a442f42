"""How an attempt ends: the words between whoever ran the code and the kernel that records it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ade.domain.job import Status


class Category(StrEnum):
    """Name the six kinds of failure of the execution contract (seed 003, 9.2)."""

    USER_CODE_ERROR = "USER_CODE_ERROR"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    RESOURCE_LIMIT = "RESOURCE_LIMIT"
    SANDBOX_VIOLATION = "SANDBOX_VIOLATION"
    DEPENDENCY_ERROR = "DEPENDENCY_ERROR"
    INTERNAL_ERROR = "INTERNAL_ERROR"


@dataclass(frozen=True, slots=True)
class JobError:
    """Tell the person who reads it what went wrong, with one stable code."""

    category: Category
    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the API shows it."""
        return {
            "category": self.category.value,
            "code": self.code,
            "message": self.message,
            "details": self.details,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold what one attempt came to; `status` is terminal, or `paused`."""

    status: Status
    result: dict[str, Any] | None = None
    error: JobError | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()


def lease_lost_error(attempt: int) -> JobError:
    """Say that the worker vanished and that no attempt is left."""
    return JobError(
        Category.INTERNAL_ERROR,
        "LEASE_LOST",
        f"The worker stopped answering during attempt {attempt}, and no attempt is left.",
        {"attempt": attempt},
    )


def timed_out_error(timeout_ms: int) -> JobError:
    """Say that the job ran longer than its timeout."""
    return JobError(
        Category.RESOURCE_LIMIT,
        "TIMED_OUT",
        f"The job ran longer than its timeout of {timeout_ms / 1000:g} s and was stopped.",
        {"timeout_ms": timeout_ms},
    )
