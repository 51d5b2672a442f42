"""`document_export`: turn a document into PDF and HTML."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ade.domain.errors import InvalidRequest
from ade.kinds.document import (
    FIRST_ERROR,
    WARM,
    Document,
    OnceEach,
    ViewMode,
    fetch_images,
    made_by,
)
from ade.kinds.kind import Asked, Kind, OutputSpec, Prepared, Workroom

FORMATS = ("pdf", "html")


class ExportInputs(BaseModel):
    """Give the document and how it is shown."""

    model_config = ConfigDict(extra="forbid")

    document: Document
    export_format: Literal["pdf", "html"] | None = Field(
        default=None, description="or name formats in the output_spec; pdf, if nothing is said"
    )
    view_mode: ViewMode = "document"
    include_speaker_notes: bool = False


class ExportOutputs(OutputSpec):
    """Say in which formats the document is wanted."""

    formats: Annotated[list[Literal["pdf", "html"]], FIRST_ERROR, OnceEach] = Field(  # type: ignore[assignment]
        default=[], max_length=len(FORMATS)
    )


class DocumentExport(Kind):
    """Turn a document into PDF and HTML, as pages or as slides."""

    name = "document_export"
    inputs = ExportInputs
    output_spec = ExportOutputs
    entry = "ade_engine.entry.export"
    env_version = made_by("export@2")
    warm = WARM

    def check(self, inputs: dict[str, Any], output_spec: dict[str, Any]) -> None:
        """Refuse two answers to the same question."""
        _formats(inputs, output_spec)

    async def prepare(self, asked: Asked, workroom: Workroom) -> Prepared:
        """Fetch the images by digest, before the walls close."""
        inputs = {**asked.inputs, "formats": _formats(asked.inputs, asked.output_spec)}
        objects = inputs["document"]["objects"]
        return Prepared(inputs, await fetch_images(objects, asked.workspace_id, workroom))


def _formats(inputs: dict[str, Any], output_spec: dict[str, Any]) -> list[str]:
    """Return the formats that are wanted, however it was said."""
    named, listed = inputs["export_format"], output_spec["formats"]
    if named is not None and listed and named not in listed:
        raise InvalidRequest(
            f"export_format asks for {named}, the formats of output_spec for {', '.join(listed)}."
        )
    wanted = set(listed) or {named or FORMATS[0]}
    return [name for name in FORMATS if name in wanted]
