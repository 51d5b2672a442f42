"""What the API says of documents and configurations, for the OpenAPI document."""

from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints

from ade.http.models import Answer, Time, Uuid


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
