"""Jobs, runs, their events, logs, results and artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ade.client.answers.decode import Answer, listed, named, nested, time
from ade.client.core.follow import ENDED


@dataclass(frozen=True)
class JobError(Answer):
    """Why a job failed."""

    category: str = ""
    code: str = ""
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting(Answer):
    """Why a job waits."""

    reason: str = ""
    detail: str = ""
    position: int | None = None


@dataclass(frozen=True)
class Execution(Answer):
    """What jobs and runs have in common."""

    status: str = ""
    evaluation: str | None = None
    counts: Mapping[str, Any] | None = None
    rerun_of: str | None = None
    started_at: datetime | None = time()
    finished_at: datetime | None = time()
    duration_ms: int | None = None
    waiting: Waiting | None = nested(Waiting)
    progress: Mapping[str, Any] | None = None
    isolation: tuple[str, ...] = ()
    error: JobError | None = nested(JobError)
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Tell whether it has reached its end."""
        return self.status in ENDED

    @property
    def succeeded(self) -> bool:
        """Tell whether it ended well."""
        return self.status == "succeeded"


@dataclass(frozen=True)
class JobAnswer(Execution):
    """One requested execution."""

    id: str = named("job_id", "")
    workspace_id: str = ""
    job_type: str = ""
    priority: str = ""
    target_id: str | None = None
    execution_key: str | None = None
    deduplicated: bool = False
    attempt: int = 0
    stop_request: str | None = None
    submitted_by: str = ""
    submitted_at: datetime | None = time()
    limits: Mapping[str, int] = field(default_factory=dict)
    resource_usage: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunVersion(Answer):
    """The version of its configuration that a run uses."""

    id: str = named("config_version_id", "")
    sequence: int = 0
    digest: str = ""


@dataclass(frozen=True)
class RunBuild(Answer):
    """The build that a run waits for or runs in."""

    id: str = named("build_id", "")
    status: str = ""
    error: JobError | None = nested(JobError)


@dataclass(frozen=True)
class RunAnswer(Execution):
    """One execution of a configuration on one document."""

    id: str = named("run_id", "")
    workspace_id: str = ""
    configuration_id: str = ""
    document_id: str = named("input_document_id", "")
    version: RunVersion | None = nested(RunVersion)
    build: RunBuild | None = nested(RunBuild)
    created_at: datetime | None = time()


@dataclass(frozen=True)
class ArtifactAnswer(Answer):
    """A file that a job left."""

    id: str = named("artifact_id", "")
    name: str = ""
    kind: str = ""
    format: str = ""
    digest: str = ""
    size_bytes: int = 0
    content_type: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event(Answer):
    """Something that happened to a job; `id` resumes the stream after it."""

    id: str = ""
    seq: int = 0
    at: datetime | None = time()
    event: str = ""
    job_id: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LogPiece(Answer):
    """A piece of what a job wrote; `id` resumes the log after it."""

    id: str = ""
    seq: int = 0
    at: datetime | None = time()
    job_id: str = ""
    attempt: int = 0
    stream: str = ""
    offset: int = 0
    dropped_bytes: int = 0
    text: str = ""


@dataclass(frozen=True)
class Attempt(Answer):
    """One lease of a job by one worker."""

    attempt: int = 0
    worker: str | None = None
    status: str = ""
    started_at: datetime | None = time()
    ended_at: datetime | None = time()
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ResultAnswer(Answer):
    """How a job ended and what it left."""

    job_id: str = ""
    job_type: str = ""
    status: str = ""
    started_at: datetime | None = time()
    finished_at: datetime | None = time()
    duration_ms: int | None = None
    execution_key: str | None = None
    env_version: str | None = None
    resource_usage: Mapping[str, float] = field(default_factory=dict)
    error: JobError | None = nested(JobError)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    logs: tuple[Mapping[str, Any], ...] = ()

    @property
    def value(self) -> Any:
        """Return the value that the job computed."""
        return self.outputs.get("result_json")

    @property
    def stdout(self) -> str:
        """Return what it printed."""
        return str(self.outputs.get("stdout") or "")

    @property
    def stderr(self) -> str:
        """Return what it wrote to stderr."""
        return str(self.outputs.get("stderr") or "")


@dataclass(frozen=True)
class TargetAnswer(Answer):
    """A lane: at most one of its jobs is live."""

    id: str = named("target_id", "")
    queue_status: str = ""
    blocking_jobs: tuple[JobAnswer, ...] = listed(JobAnswer)
    running_job: JobAnswer | None = nested(JobAnswer)
    queued: int = 0
