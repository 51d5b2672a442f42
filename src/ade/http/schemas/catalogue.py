"""Documents, configurations and versions as the API shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, StringConstraints
from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.http.schemas.body import RequestModel, Text, Time, Uuid
from ade.store.rows import Activation, Configuration, Document, File, Version


class DocumentBody(TypedDict):
    """An uploaded file."""

    document_id: Uuid
    workspace_id: Uuid
    name: str
    content_type: str | None
    size_bytes: int
    digest: str
    created_at: Time
    links: dict[str, str]


class DocumentPage(TypedDict):
    """Some documents, newest first."""

    items: list[DocumentBody]
    next_cursor: str | None


class SheetName(TypedDict):
    """One sheet of a document."""

    name: str
    hidden: bool


class PreviewBody(TypedDict):
    """The first rows of a sheet, for people."""

    document_id: Uuid
    format: str
    sheets: list[SheetName]
    sheet: str
    first_row: int
    columns: list[str]
    rows: list[list[Any]]
    more_rows: bool
    cut: bool


class PreviewError(BaseModel):
    """Why there is no preview, as the reader of the file says it."""

    code: Annotated[str, StringConstraints(max_length=100)]
    message: Annotated[str, StringConstraints(max_length=1000)]


class ConfigurationRequest(RequestModel):
    """A configuration to create; `template` names one to start from, else it is empty."""

    name: Text
    template: Text | None = None


class VersionBody(TypedDict):
    """What a configuration was at one moment."""

    config_version_id: Uuid
    configuration_id: Uuid
    sequence: int
    digest: str
    created_by: str
    created_at: Time
    links: dict[str, str]


class VersionPage(TypedDict):
    """The versions of a configuration, newest first."""

    items: list[VersionBody]
    next_cursor: str | None


class FileBody(TypedDict):
    """One file of a configuration."""

    path: str
    digest: str
    size_bytes: int


class FileList(TypedDict):
    """The files of a draft; `digest` names them all together."""

    digest: str
    items: list[FileBody]
    next_cursor: None


class VersionDetail(VersionBody):
    """A version and its files."""

    files: list[FileBody]


class ConfigurationBody(TypedDict):
    """Rules and code under a name."""

    configuration_id: Uuid
    workspace_id: Uuid
    name: str
    created_at: Time
    links: dict[str, str]


class ActiveVersion(TypedDict):
    """The version that runs use by default, and which user activated it."""

    sequence: int
    config_version_id: Uuid
    digest: str
    activated_at: Time
    activated_by: str


class ConfigurationDetail(ConfigurationBody):
    """A configuration, what its draft is, its active version and its newest one.

    `activating_version_id` is the version that becomes active when its build is ready.
    """

    draft_digest: str
    active_version: ActiveVersion | None
    activating_version_id: Uuid | None
    latest_version: VersionBody | None


class ConfigurationPage(TypedDict):
    """Some configurations, newest first."""

    items: list[ConfigurationBody]
    next_cursor: str | None


class TemplateBody(TypedDict):
    """A configuration to start from."""

    name: str
    files: list[str]


class TemplatePage(TypedDict):
    """The templates that there are."""

    items: list[TemplateBody]
    next_cursor: None


class ProblemFound(TypedDict):
    """One thing that is wrong with a draft, and what to do about it."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    file: str
    line: int | None
    hint: str


class CheckBody(TypedDict):
    """What is wrong with a draft; it is valid if nothing of it is an error."""

    valid: bool
    digest: str
    problems: list[ProblemFound]
    fields: list[dict[str, str]]


def document_path(slug: str, document_id: str) -> str:
    """Return the path of a document."""
    return f"/api/v1/workspaces/{slug}/documents/{document_id}"


def document_body(document: Document, slug: str) -> DocumentBody:
    """Show a document."""
    path = document_path(slug, document.id)
    return {
        "document_id": document.id,
        "workspace_id": document.workspace_id,
        "name": document.name,
        "content_type": document.content_type,
        "size_bytes": document.size_bytes,
        "digest": document.digest,
        "created_at": rfc3339(document.created_at),
        "links": {"self": path, "content": f"{path}/content", "preview": f"{path}/preview"},
    }


def configuration_path(slug: str, configuration_id: str) -> str:
    """Return the path of a configuration."""
    return f"/api/v1/workspaces/{slug}/configurations/{configuration_id}"


def active_version_body(activation: Activation, version: Version | None) -> ActiveVersion | None:
    """Show which version of a configuration is active."""
    if version is None or activation.activated_at is None or activation.activated_by is None:
        return None
    return {
        "sequence": version.sequence,
        "config_version_id": version.id,
        "digest": version.digest,
        "activated_at": rfc3339(activation.activated_at),
        "activated_by": activation.activated_by,
    }


def configuration_body(configuration: Configuration, slug: str) -> ConfigurationBody:
    """Show a configuration."""
    path = configuration_path(slug, configuration.id)
    return {
        "configuration_id": configuration.id,
        "workspace_id": configuration.workspace_id,
        "name": configuration.name,
        "created_at": rfc3339(configuration.created_at),
        "links": {
            "self": path,
            **{name: f"{path}/{name}" for name in ("files", "package", "versions", "runs")},
        },
    }


def version_body(version: Version, slug: str) -> VersionBody:
    """Show a version."""
    path = f"{configuration_path(slug, version.configuration_id)}/versions/{version.sequence}"
    return {
        "config_version_id": version.id,
        "configuration_id": version.configuration_id,
        "sequence": version.sequence,
        "digest": version.digest,
        "created_by": version.created_by,
        "created_at": rfc3339(version.created_at),
        "links": {
            "self": path,
            **{name: f"{path}/{name}" for name in ("package", "activate", "activation")},
        },
    }


def file_body(file: File) -> FileBody:
    """Show a file of a draft or of a version."""
    return {"path": file.path, "digest": file.digest, "size_bytes": file.size_bytes}
