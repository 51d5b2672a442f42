"""How an attempt ends: the types with which a runner tells the kernel what to record."""

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ade.domain.evaluation import Evaluation
from ade.domain.job import Status


class Category(StrEnum):
    """Name the six kinds of failure of the execution contract."""

    USER_CODE_ERROR = "USER_CODE_ERROR"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    RESOURCE_LIMIT = "RESOURCE_LIMIT"
    SANDBOX_VIOLATION = "SANDBOX_VIOLATION"
    DEPENDENCY_ERROR = "DEPENDENCY_ERROR"
    INTERNAL_ERROR = "INTERNAL_ERROR"


@dataclass(frozen=True, slots=True)
class JobError:
    """Say what went wrong, for the person who reads it, with one stable code."""

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
class CodeLocation:
    """Say where a job's code was when it was stopped, as far as that is known.

    `doing` is what ADE itself was doing for the job, where none of the job's own code was running.
    """

    file: str | None = None
    line: int | None = None
    function: str | None = None
    field: str | None = None
    source: str | None = None
    doing: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, as the details of an error."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        if self.file is None:
            return "" if self.doing is None else f", while {self.doing}"
        spot = self.file if self.line is None else f"{self.file}:{self.line}"
        spot += f", field {self.field}" if self.field else ""
        return f", in {self.function} ({spot})" if self.function else f" ({spot})"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """Hold a file that a job left, with the kind and metadata that the job declared."""

    name: str
    path: Path
    size_bytes: int
    digest: str
    kind: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Artifact:
    """Name a file that a job left and that is kept by its digest."""

    id: str
    name: str
    kind: str
    format: str
    digest: str
    size_bytes: int
    uri: str
    content_type: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the artifact as the API shows it."""
        return {
            "artifact_id": self.id,
            "name": self.name,
            "kind": self.kind,
            "format": self.format,
            "digest": self.digest,
            "size_bytes": self.size_bytes,
            "uri": self.uri,
            "content_type": self.content_type,
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold how one attempt ended; `status` is terminal, or `paused`.

    `files` are what it left where it ran; `artifacts` are those that were kept and that its result
    names; `location` is where its code was when it was stopped; `evaluation` and `counts` are what
    a run says of its own result.
    """

    status: Status
    result: dict[str, Any] | None = None
    error: JobError | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    isolation: tuple[str, ...] = ()
    files: tuple[OutputFile, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    location: CodeLocation | None = None
    evaluation: Evaluation | None = None
    counts: dict[str, Any] | None = None


def located(error: JobError, location: CodeLocation | None) -> JobError:
    """Return an error with the location of the code in it, unless it names one already."""
    if location is None or "file" in error.details:
        return error
    message = f"{error.message.rstrip('.')}{location}."
    return replace(error, message=message, details={**error.details, **location.as_dict()})


def lease_lost_error(attempt: int) -> JobError:
    """Make the error of a job whose worker stopped renewing and that has no attempt left."""
    return JobError(
        Category.INTERNAL_ERROR,
        "LEASE_LOST",
        f"The worker stopped answering during attempt {attempt}, and no attempt is left.",
        {"attempt": attempt},
    )


def agent_lost_error(agent: str | None, attempt: int) -> JobError:
    """Make the error of a job whose agent reported nothing for too long."""
    return JobError(
        Category.INTERNAL_ERROR,
        "AGENT_LOST",
        f"The agent {agent} reported nothing for too long while it ran the job. Whether the job ran"
        " to its end is not known; look at what it left before you run it again.",
        {"attempt": attempt, "worker_id": agent},
    )


def timed_out_error(timeout_ms: int) -> JobError:
    """Make the error of a job that ran longer than its timeout."""
    return JobError(
        Category.RESOURCE_LIMIT,
        "TIMED_OUT",
        f"The job ran longer than its timeout of {timeout_ms / 1000:g} s and was stopped.",
        {"timeout_ms": timeout_ms},
    )
