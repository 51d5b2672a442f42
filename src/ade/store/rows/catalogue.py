"""The rows of documents, configurations, versions and builds."""

import json
from typing import NamedTuple


class Document(NamedTuple):
    """Hold an uploaded file."""

    workspace_id: str
    id: str
    name: str
    digest: str
    size_bytes: int
    created_at: int
    content_type: str | None
    deleted_at: int | None


class Configuration(NamedTuple):
    """Hold a configuration."""

    workspace_id: str
    id: str
    name: str
    created_at: int
    deleted_at: int | None


class File(NamedTuple):
    """Hold one file of a draft or of a version."""

    path: str
    digest: str
    size_bytes: int


class Version(NamedTuple):
    """Hold what a configuration was at one moment."""

    workspace_id: str
    id: str
    configuration_id: str
    sequence: int
    digest: str
    manifest: str
    created_by: str
    created_at: int

    @property
    def files(self) -> list[File]:
        """Return its files in the order of their paths."""
        return [File(*entry) for entry in json.loads(self.manifest)]


class Build(NamedTuple):
    """Hold a prepared environment, or the request for one.

    `job_id` is None if there was nothing to do. While the build is not settled, `status`, `attempt`
    and `started_at` are what its job says.
    """

    workspace_id: str
    id: str
    configuration_id: str
    fingerprint: str
    status: str
    error: str | None
    created_at: int
    started_at: int | None
    finished_at: int | None
    version_id: str | None
    environment: str | None
    job_id: str | None
    attempt: int = 0


class BuildVersion(NamedTuple):
    """Name the version that a build was made of."""

    id: str
    sequence: int
    digest: str


class Activation(NamedTuple):
    """Hold which version of a configuration is active, and which one is to become it."""

    workspace_id: str
    configuration_id: str
    version_id: str | None = None
    activated_at: int | None = None
    activated_by: str | None = None
    pending_version_id: str | None = None
    pending_by: str | None = None


class RunParts(NamedTuple):
    """Hold what exists of the parts of a run; what is missing has to be made."""

    document: Document
    version: Version
    build: Build | None
