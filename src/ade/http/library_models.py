"""What the API says of documents and configurations, for the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, StringConstraints

from ade.http.models import Answer, Request, Text, Time, Uuid


class DocumentBody(Answer):
    """An uploaded file."""

    document_id: Uuid
    workspace_id: Uuid
    name: str
    content_type: str | None
    size_bytes: int
    digest: str
    created_at: Time
    links: dict[str, str]


class DocumentPage(Answer):
    """Some documents, newest first."""

    items: list[DocumentBody]
    next_cursor: str | None


class SheetName(Answer):
    """One sheet of a document."""

    name: str
    hidden: bool


class PreviewBody(Answer):
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


class ConfigurationRequest(Request):
    """A configuration to make; `template` names one to start from, else it is empty."""

    name: Text
    template: Text | None = None


class VersionBody(Answer):
    """What a configuration was at one moment."""

    config_version_id: Uuid
    configuration_id: Uuid
    sequence: int
    digest: str
    created_by: str
    created_at: Time
    links: dict[str, str]


class VersionPage(Answer):
    """The versions of a configuration, newest first."""

    items: list[VersionBody]
    next_cursor: str | None


class FileBody(Answer):
    """One file of a configuration."""

    path: str
    digest: str
    size_bytes: int


class FileList(Answer):
    """The files of a draft; `digest` names them all together."""

    digest: str
    items: list[FileBody]
    next_cursor: None


class VersionDetail(VersionBody):
    """A version and its files."""

    files: list[FileBody]


class ConfigurationBody(Answer):
    """Rules and code under a name."""

    configuration_id: Uuid
    workspace_id: Uuid
    name: str
    created_at: Time
    links: dict[str, str]


class ConfigurationDetail(ConfigurationBody):
    """A configuration, what its draft is, and its newest version."""

    draft_digest: str
    latest_version: VersionBody | None


class ConfigurationPage(Answer):
    """Some configurations, newest first."""

    items: list[ConfigurationBody]
    next_cursor: str | None


class TemplateBody(Answer):
    """A configuration to start from."""

    name: str
    files: list[str]


class TemplatePage(Answer):
    """The templates that there are."""

    items: list[TemplateBody]
    next_cursor: None


class ProblemFound(Answer):
    """One thing that is wrong with a draft, and what to do about it."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    file: str
    line: int | None
    hint: str


class CheckBody(Answer):
    """What is wrong with a draft; it is valid if nothing of it is an error."""

    valid: bool
    digest: str
    problems: list[ProblemFound]
    fields: list[dict[str, str]]
