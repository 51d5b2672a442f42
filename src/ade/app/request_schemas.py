"""The bodies that create jobs: the execution contract, and the short form for runs.

These are typed dictionaries, not models: a body is validated and then stored as it came, so no
object is made for it. Fields of the contract that only ADE can know are accepted and ignored.
"""

from typing import Annotated, Any, Literal, Required

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints, TypeAdapter
from typing_extensions import TypedDict, TypeIs

from ade.domain.evaluation import FailOn
from ade.kinds.normalize import OutputFormats

NAME_CHARS_MAX = 200
OBJECTS_MAX = 1000
_STRICT = ConfigDict(extra="forbid", strict=True)

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARS_MAX)]
JobType = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Amount = Annotated[int, Field(ge=1, le=2**63 - 1)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]


class LimitsRequest(TypedDict, total=False):
    """The limits of the job; each is at most its quota."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    timeout_ms: Amount
    cpu_ms: Amount
    memory_mb: Amount
    max_output_kb: Amount
    max_artifacts: Count


class TargetRequest(TypedDict, total=False):
    """The objects of the document that the job is about."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    object_id: Name
    object_ids: Annotated[list[Name], Field(max_length=OBJECTS_MAX)]


class EnvironmentRequest(TypedDict, total=False):
    """What the job runs in."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    language: Name | None
    env_version: Name | None
    network_access: Literal["disabled", "enabled"] | None


class RequestedBy(TypedDict, total=False):
    """The user that the client names; ADE records the user of the key."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    user_id: Name | None


class JobRequest(TypedDict, total=False):
    """A job of the execution contract (schema version 1)."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    job_type: Required[JobType]
    inputs: Required[dict[str, Any]]
    # Without one, the work belongs to no revision: its inputs alone tell it apart.
    document_revision_id: Name | None
    schema_version: Name | None
    project_id: Name | None
    document_id: Name | None
    target: TargetRequest | None
    output_spec: dict[str, Any] | None
    limits: LimitsRequest | None
    priority: Literal["high", "normal", "low"] | None
    environment: EnvironmentRequest | None
    reuse_failed: bool | None
    dedupe: bool | None
    target_id: Name | None
    not_before: AwareDatetime | None
    # What only ADE can know: accepted, because the contract's envelope has it, and ignored.
    job_id: Name | None
    created_at: Name | None
    workspace_id: Name | None
    execution_key: Name | None
    requested_by: RequestedBy | None


SET_BY_ADE = frozenset({"job_id", "created_at", "workspace_id", "execution_key", "requested_by"})


class RunRequest(TypedDict, total=False):
    """A run of a configuration version on one document."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    config_version_id: Required[Name]
    document_id: Name
    document_ids: Annotated[list[Name], Field(min_length=1, max_length=1)]
    runtime_network_access: bool
    fail_on: FailOn
    outputs: OutputFormats


class BatchRequest(TypedDict):
    """Many jobs and runs in one transaction."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    # From left to right: what is a job, as most are, is never compared with a run.
    jobs: list[Annotated[JobRequest | RunRequest, Field(union_mode="left_to_right")]]


class UncheckedBatchRequest(TypedDict):
    """Many jobs and runs, some of which are not valid."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]

    jobs: list[Any]


JOB: TypeAdapter[JobRequest] = TypeAdapter(JobRequest)
RUN: TypeAdapter[RunRequest] = TypeAdapter(RunRequest)
BATCH: TypeAdapter[BatchRequest] = TypeAdapter(BatchRequest)
UNCHECKED_BATCH: TypeAdapter[UncheckedBatchRequest] = TypeAdapter(UncheckedBatchRequest)


def is_run(request: JobRequest | RunRequest) -> TypeIs[RunRequest]:
    """Tell the short form for runs from a job of the execution contract."""
    return "config_version_id" in request
