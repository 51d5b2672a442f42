"""What the API says of builds and activations, for the OpenAPI document."""

from typing import Any, Literal

from ade.http.models import Answer, JobErrorBody, Time, Uuid

BuildStatus = Literal["queued", "building", "ready", "failed", "cancelled"]


class BuildBody(Answer):
    """A prepared environment for one version of a configuration, or the wish for one."""

    build_id: Uuid
    workspace_id: Uuid
    configuration_id: Uuid
    config_version_id: Uuid | None
    fingerprint: str
    environment: str | None
    status: BuildStatus
    attempt: int
    error: JobErrorBody | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    links: dict[str, str]


class BuildPage(Answer):
    """Some builds, newest first."""

    items: list[BuildBody]
    next_cursor: str | None


class ActivationBody(Answer):
    """How far the activation of a version has come, and what it found."""

    status: Literal["none", "queued", "building", "ready", "failed", "cancelled"]
    build_id: Uuid | None
    python_executable: str | None
    environment: str | None
    packages: list[str]
    started_at: Time | None
    finished_at: Time | None
    diagnostics: list[dict[str, Any]]
    hooks: dict[str, Any] | None
