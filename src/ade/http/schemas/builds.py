"""Builds and activations as the API shows them."""

import json
from typing import Any, Literal

from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.domain.build import BuildStatus
from ade.http.schemas.body import Time, Uuid, optional_time, stored_json
from ade.http.schemas.jobs import JobErrorBody
from ade.store.rows import Build


class BuildBody(TypedDict):
    """A prepared environment for one version of a configuration, or the request for one."""

    build_id: Uuid
    workspace_id: Uuid
    configuration_id: Uuid
    config_version_id: Uuid | None
    fingerprint: str
    environment: str | None
    status: BuildStatus
    attempt: int
    job_id: Uuid | None
    error: JobErrorBody | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    links: dict[str, str]


class BuildPage(TypedDict):
    """Some builds, newest first."""

    items: list[BuildBody]
    next_cursor: str | None


class ActivationBody(TypedDict):
    """How far the activation of a version has come, and what it found.

    The status is that of its build, or `none` for a version that was never activated.
    """

    status: BuildStatus | Literal["none"]
    build_id: Uuid | None
    python_executable: str | None
    environment: str | None
    packages: list[str]
    started_at: Time | None
    finished_at: Time | None
    diagnostics: list[dict[str, Any]]
    hooks: dict[str, Any] | None


def build_path(slug: str, build_id: str) -> str:
    """Return the path of a build."""
    return f"/api/v1/workspaces/{slug}/builds/{build_id}"


def build_body(build: Build, slug: str) -> BuildBody:
    """Show a build."""
    path = build_path(slug, build.id)
    return {
        "build_id": build.id,
        "workspace_id": build.workspace_id,
        "configuration_id": build.configuration_id,
        "config_version_id": build.version_id,
        "fingerprint": build.fingerprint,
        "environment": build.environment,
        "status": BuildStatus(build.status),
        "attempt": build.attempt,
        "job_id": build.job_id,
        "error": stored_json(build.error),
        "created_at": rfc3339(build.created_at),
        "started_at": optional_time(build.started_at),
        "finished_at": optional_time(build.finished_at),
        "links": {"self": path, "log": f"{path}/log", "cancel": f"{path}/cancel"},
    }


def activation_body(
    build: Build | None, result: dict[str, Any] | None, hooks: dict[str, Any] | None
) -> ActivationBody:
    """Show an activation: its build, and what the activation wrote down when it ended."""
    found = result or {}
    diagnostics = found.get("diagnostics", [])
    if build is not None and build.error and not diagnostics:
        # No process was left to record it: each process that made it died.
        diagnostics = [{"level": "error", **json.loads(build.error)}]
    return {
        "status": "none" if build is None else BuildStatus(build.status),
        "build_id": None if build is None else build.id,
        "python_executable": found.get("python_executable"),
        "environment": None if build is None else build.environment,
        "packages": found.get("packages", []),
        "started_at": None if build is None else optional_time(build.started_at),
        "finished_at": None if build is None else optional_time(build.finished_at),
        "diagnostics": diagnostics,
        "hooks": hooks or None,
    }
