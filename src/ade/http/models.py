"""What the API answers with, for the OpenAPI document; small bodies are also read by these."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Status = Literal[
    "pending", "queued", "running", "paused", "succeeded", "failed", "timed_out", "cancelled"
]
RoleName = Literal["viewer", "editor", "admin"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Uuid = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class Answer(BaseModel):
    """Something that ADE answers with."""

    model_config = ConfigDict(extra="allow")


class Request(BaseModel):
    """Something that a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(Answer):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[dict[str, Any]] | None = None
    trace_id: str


class Waiting(Answer):
    """Why a job waits."""

    reason: Literal["capacity", "build", "lane", "agent", "schedule", "safe_mode"]
    detail: str
    position: int | None


class JobLimits(Answer):
    """What a job may use."""

    timeout_ms: int
    cpu_ms: int
    memory_mb: int
    max_output_kb: int
    max_artifacts: int


class Usage(Answer):
    """What a job used."""

    cpu_ms: float
    memory_mb_peak: float


class JobErrorBody(Answer):
    """Why a job failed."""

    category: str
    code: str
    message: str
    details: dict[str, Any]


class Job(Answer):
    """One asked-for execution."""

    job_id: Uuid
    workspace_id: Uuid
    job_type: str
    status: Status
    priority: Literal["high", "normal", "low"]
    target_id: str | None
    execution_key: str | None
    deduplicated: bool
    rerun_of: str | None
    attempt: int
    stop_request: Literal["cancel", "pause"] | None
    submitted_by: str
    submitted_at: Time
    started_at: Time | None
    finished_at: Time | None
    duration_ms: int | None
    waiting: Waiting | None
    limits: JobLimits
    resource_usage: Usage
    isolation: list[str]
    error: JobErrorBody | None
    progress: dict[str, Any] | None
    links: dict[str, str]


class JobPage(Answer):
    """Some jobs, newest first."""

    items: list[Job]
    next_cursor: str | None


class BatchItem(Answer):
    """What came of one job of a batch."""

    status: int
    job: Job | None = None
    problem: Problem | None = None


class Batch(Answer):
    """What came of each job of a batch, in order."""

    items: list[BatchItem]


class Retried(Answer):
    """A job that runs again as a new one; `attempt` counts the runs of this work."""

    job_id: Uuid
    status: Status
    retry_of: Uuid
    attempt: int


class Attempt(Answer):
    """One lease of a job by one worker."""

    attempt: int
    worker: str | None
    status: str
    started_at: Time
    ended_at: Time | None
    error: dict[str, Any] | None


class AttemptPage(Answer):
    """All attempts of a job."""

    items: list[Attempt]
    next_cursor: None


class Artifact(Answer):
    """A file that a job left."""

    artifact_id: Uuid
    name: str
    kind: str
    format: str
    digest: str
    size_bytes: int
    uri: str
    content_type: str
    metadata: dict[str, Any]


class SchemaName(Answer):
    """Where a JSON Schema is."""

    name: str
    url: str


class SchemaPage(Answer):
    """The JSON Schemas of the execution contract."""

    items: list[SchemaName]
    next_cursor: None


class LogLine(Answer):
    """Something that happened around a job, for its owner."""

    level: Literal["info", "warning", "error"]
    message: str
    timestamp: Time | None = None


class SignedLink(Answer):
    """A link to an artifact's bytes that needs no key, until its time is over."""

    url: str
    expires_at: Time


class Result(Answer):
    """How a job ended and what it left (execution contract, sections 8 and 9)."""

    schema_version: str
    job_id: Uuid
    job_type: str
    status: Literal["SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED"]
    started_at: Time | None
    finished_at: Time
    duration_ms: int | None
    execution_key: str | None
    env_version: str | None
    resource_usage: Usage
    error: JobErrorBody | None = None
    outputs: dict[str, Any]
    artifacts: list[Artifact]
    logs: list[LogLine]


class Target(Answer):
    """A lane: at most one of its jobs is live."""

    target_id: str
    queue_status: Literal["running", "paused"]
    blocking_jobs: list[Job]
    running_job: Job | None
    queued: int


class ResolveRequest(Request):
    """The result that a person found."""

    result: Any
    note: Text | None = None


class NoteRequest(Request):
    """Why it is done."""

    note: Text | None = None


class RunBuild(Answer):
    """The build that a run waits for or runs in."""

    build_id: Uuid
    status: Literal["queued", "building", "ready", "failed", "cancelled"]
    error: JobErrorBody | None


class Run(Answer):
    """One execution of a configuration on one document."""

    run_id: Uuid
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    configuration_id: Uuid
    build_id: Uuid
    build: RunBuild | None
    input_document_id: Uuid
    rerun_of: str | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    progress: dict[str, Any] | None
    error: JobErrorBody | None
    links: dict[str, str]


class RunPage(Answer):
    """Some runs, newest first."""

    items: list[Run]
    next_cursor: str | None


class RunLimits(Request):
    """What a run may use; at most its quota."""

    timeout_ms: int | None = Field(default=None, ge=1, le=2**63 - 1)
    cpu_ms: int | None = Field(default=None, ge=1, le=2**63 - 1)
    memory_mb: int | None = Field(default=None, ge=1, le=2**63 - 1)
    max_output_kb: int | None = Field(default=None, ge=1, le=2**63 - 1)
    max_artifacts: int | None = Field(default=None, ge=0, le=2**63 - 1)


class StartRunRequest(Request):
    """What to run a configuration on."""

    input_document_id: Text
    config_version_id: Text | None = None
    priority: Literal["high", "normal", "low"] | None = None
    limits: RunLimits | None = None
    runtime_network_access: bool | None = None


class ReasonRequest(Request):
    """Why it is done."""

    reason: Text | None = None


class WorkspaceRequest(Request):
    """A workspace to make."""

    slug: Slug
    name: Text


class WorkspaceBody(Answer):
    """A tenant."""

    workspace_id: Uuid
    slug: str
    name: str
    role: RoleName
    created_at: Time


class WorkspacePage(Answer):
    """The workspaces that the key may see."""

    items: list[WorkspaceBody]
    next_cursor: None


class MemberRequest(Request):
    """A user and its role; a name that nobody has becomes a user."""

    name: Text
    role: RoleName


class MemberBody(Answer):
    """A user's place in a workspace."""

    user_id: Uuid
    name: str
    role: RoleName
    created_at: Time


class MemberPage(Answer):
    """The members of a workspace."""

    items: list[MemberBody]
    next_cursor: None


class KeyRequest(Request):
    """A key to make: for the caller, or for another member."""

    label: Text
    role: RoleName = "editor"
    user_id: Text | None = None


class KeyBody(Answer):
    """What may be known of a key after it was shown."""

    key_id: Uuid
    label: str
    role: RoleName | None
    user_id: Uuid
    user_name: str
    created_at: Time
    revoked_at: Time | None


class KeyMade(KeyBody):
    """A key in the one moment in which it can be seen."""

    key: str


class KeyPage(Answer):
    """The keys of a workspace, newest first."""

    items: list[KeyBody]
    next_cursor: None


class ComponentBody(Answer):
    """How one part is."""

    name: str
    status: Literal["ok", "degraded", "down"]
    detail: str


class HealthBody(Answer):
    """How the server is."""

    status: Literal["ok", "degraded", "down"]
    components: list[ComponentBody]
