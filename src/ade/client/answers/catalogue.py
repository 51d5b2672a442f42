"""Documents, configurations, versions and builds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ade.client.answers.decode import Answer, listed, named, nested, time
from ade.client.answers.jobs import JobError


@dataclass(frozen=True)
class DocumentAnswer(Answer):
    """An uploaded file."""

    id: str = named("document_id", "")
    workspace_id: str = ""
    name: str = ""
    content_type: str | None = None
    size_bytes: int = 0
    digest: str = ""
    created_at: datetime | None = time()


@dataclass(frozen=True)
class VersionAnswer(Answer):
    """What a configuration was at one moment."""

    id: str = named("config_version_id", "")
    configuration_id: str = ""
    sequence: int = 0
    digest: str = ""
    created_by: str = ""
    created_at: datetime | None = time()


@dataclass(frozen=True)
class ActiveVersion(Answer):
    """The version that runs use by default."""

    id: str = named("config_version_id", "")
    sequence: int = 0
    digest: str = ""
    activated_at: datetime | None = time()
    activated_by: str = ""


@dataclass(frozen=True)
class ConfigurationAnswer(Answer):
    """Rules and code under a name; an item of a list lacks draft and versions."""

    id: str = named("configuration_id", "")
    workspace_id: str = ""
    name: str = ""
    created_at: datetime | None = time()
    draft_digest: str | None = None
    active_version: ActiveVersion | None = nested(ActiveVersion)
    activating_version_id: str | None = None
    latest_version: VersionAnswer | None = nested(VersionAnswer)


@dataclass(frozen=True)
class ProblemFound(Answer):
    """One thing that is wrong with a draft, and what to do about it."""

    code: str = ""
    severity: str = ""
    message: str = ""
    file: str = ""
    line: int | None = None
    hint: str = ""


@dataclass(frozen=True)
class DraftCheck(Answer):
    """What is wrong with a draft."""

    valid: bool = False
    digest: str = ""
    problems: tuple[ProblemFound, ...] = listed(ProblemFound)
    fields: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class BuildAnswer(Answer):
    """A prepared environment for one version of a configuration, or the request for one."""

    id: str = named("build_id", "")
    workspace_id: str = ""
    configuration_id: str = ""
    config_version_id: str | None = None
    fingerprint: str = ""
    environment: str | None = None
    status: str = ""
    attempt: int = 0
    job_id: str | None = None
    error: JobError | None = nested(JobError)
    created_at: datetime | None = time()
    started_at: datetime | None = time()
    finished_at: datetime | None = time()
    links: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Tell whether it is ready, failed or cancelled."""
        return self.status in ("ready", "failed", "cancelled")
