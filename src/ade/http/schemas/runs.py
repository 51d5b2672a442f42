"""Runs as the API shows them, and the body that starts one."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.domain.build import BuildStatus
from ade.domain.evaluation import Evaluation, FailOn
from ade.domain.job import Priority, Status
from ade.domain.vocabulary import RunStatus, run_status
from ade.http.schemas.body import (
    SEQUENCE_MAX,
    RequestModel,
    Text,
    Time,
    Uuid,
    optional_time,
    stored_json,
)
from ade.http.schemas.jobs import (
    JobErrorBody,
    RunCounts,
    Waiting,
    duration_ms,
    evaluation_body,
    job_path,
)
from ade.kinds.normalize import OutputFormats
from ade.store.rows import Build, BuildVersion, JobRow

LIMIT_MAX = 2**63 - 1


class RunBuild(TypedDict):
    """The build that a run waits for or runs in."""

    build_id: Uuid
    status: BuildStatus
    error: JobErrorBody | None


class RunVersion(TypedDict):
    """The version of its configuration that a run uses."""

    config_version_id: Uuid
    sequence: int
    digest: str


class Run(TypedDict):
    """One execution of a configuration on one document."""

    run_id: Uuid
    workspace_id: Uuid
    status: RunStatus
    evaluation: Evaluation | None
    counts: RunCounts | None
    configuration_id: Uuid
    version: RunVersion | None
    build_id: Uuid
    build: RunBuild | None
    waiting: Waiting | None
    input_document_id: Uuid
    rerun_of: str | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    duration_ms: int | None
    isolation: list[str]
    progress: dict[str, Any] | None
    error: JobErrorBody | None
    links: dict[str, str]


class RunPage(TypedDict):
    """Some runs, newest first."""

    items: list[Run]
    next_cursor: str | None


class RunStatusCounts(TypedDict):
    """How many runs there are of each status."""

    counts: dict[RunStatus, int]
    total: int


class RunLimits(RequestModel):
    """What a run may use; at most its quota."""

    timeout_ms: int | None = Field(default=None, ge=1, le=LIMIT_MAX)
    cpu_ms: int | None = Field(default=None, ge=1, le=LIMIT_MAX)
    memory_mb: int | None = Field(default=None, ge=1, le=LIMIT_MAX)
    max_output_kb: int | None = Field(default=None, ge=1, le=LIMIT_MAX)
    max_artifacts: int | None = Field(default=None, ge=0, le=LIMIT_MAX)


class StartRunRequest(RequestModel):
    """What to run a configuration on."""

    input_document_id: Text | None = None
    document_id: Text | None = Field(default=None, description="the same as input_document_id")
    version: Annotated[int, Field(ge=1, le=SEQUENCE_MAX)] | Literal["active", "draft"] | None = (
        Field(
            default=None,
            description="a version's number, `active` or `draft`; without it the active version, or"
            " the draft as long as none is active",
        )
    )
    config_version_id: Text | None = Field(default=None, description="a version by its id")
    priority: Priority | None = None
    limits: RunLimits | None = None
    runtime_network_access: bool | None = None
    fail_on: FailOn | None = Field(
        default=None,
        description="which result is a failure; each word includes those before it. Without it,"
        " what `fail_on` in the package's `config.toml` says, or `unusable`",
    )
    outputs: OutputFormats | None = Field(
        default=None,
        description="the formats of the rows; without it, what `outputs` in the package's"
        " `config.toml` says, or the workbook",
    )

    @field_validator("version", mode="before")
    @classmethod
    def _check_version(cls, value: Any) -> Any:
        """Reject what is no version with one message instead of one for each type."""
        is_number = type(value) is int and 1 <= value <= SEQUENCE_MAX
        if value is None or is_number or value in ("active", "draft"):
            return value
        raise PydanticCustomError("version", "give the number of a version, `active` or `draft`")


def run_path(slug: str, run_id: str) -> str:
    """Return the path of a run."""
    return f"/api/v1/workspaces/{slug}/runs/{run_id}"


def run_body(
    job: JobRow,
    slug: str,
    build: Build | None,
    version: BuildVersion | None,
    waiting: Waiting | None,
) -> Run:
    """Show a job as a run; `waiting` says why it waits if it does."""
    path = job_path(slug, job.id)
    return {
        "run_id": job.id,
        "workspace_id": job.workspace_id,
        "status": run_status(Status(job.status)),
        **evaluation_body(job),
        "configuration_id": _required(job.configuration_id),
        "version": None if version is None else _version(version),
        "build_id": _required(job.build_id),
        "build": None if build is None else _build(build),
        "waiting": waiting,
        "input_document_id": _required(job.document_id),
        "rerun_of": job.rerun_of,
        "created_at": rfc3339(job.submitted_at),
        "started_at": optional_time(job.started_at),
        "finished_at": optional_time(job.finished_at),
        "duration_ms": duration_ms(job),
        "isolation": stored_json(job.isolation) or [],
        "progress": stored_json(job.progress),
        "error": stored_json(job.error),
        "links": {
            "self": run_path(slug, job.id),
            "job": path,
            "events": f"{path}/events",
            "logs": f"{path}/logs",
            "artifact": f"{path}/artifact",
            "output": f"{path}/output",
        },
    }


def _required(value: str | None) -> str:
    assert value is not None, "the database refuses a run without it"
    return value


def _version(version: BuildVersion) -> RunVersion:
    return {
        "config_version_id": version.id,
        "sequence": version.sequence,
        "digest": version.digest,
    }


def _build(build: Build) -> RunBuild:
    return {
        "build_id": build.id,
        "status": BuildStatus(build.status),
        "error": stored_json(build.error),
    }
