"""`document_export`: turn a document into PDF and HTML."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ade.domain.errors import InvalidRequest
from ade.kinds.document import (
    FIRST_ERROR,
    PRELOAD,
    DocumentContent,
    OnceEach,
    ViewMode,
    fetch_images,
    with_library_versions,
)
from ade.kinds.kind import JobInputs, JobIO, Kind, OutputSpec, Prepared

FORMATS = ("pdf", "html")


class ExportInputs(BaseModel):
    """The document, and how it is shown."""

    model_config = ConfigDict(extra="forbid")

    document: DocumentContent
    export_format: Literal["pdf", "html"] | None = Field(
        default=None, description="or list formats in the output_spec; the default is pdf"
    )
    view_mode: ViewMode = "document"
    include_speaker_notes: bool = False


class ExportOutputs(OutputSpec):
    """The formats of the export."""

    formats: Annotated[list[Literal["pdf", "html"]], FIRST_ERROR, OnceEach] = Field(  # type: ignore[assignment]
        default=[], max_length=len(FORMATS)
    )


class DocumentExport(Kind):
    """Turn a document into PDF and HTML, as pages or as slides."""

    name = "document_export"
    inputs = ExportInputs
    output_spec = ExportOutputs
    entry = "ade_engine.entry.export"
    env_version = with_library_versions("export@2")
    preload = PRELOAD

    def check(self, inputs: dict[str, Any], output_spec: dict[str, Any]) -> None:
        """Reject an export_format that contradicts the formats of the output_spec."""
        _formats(inputs, output_spec)

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Fetch the images by digest; the sandbox has no access to the blob store."""
        inputs = {**job.inputs, "formats": _formats(job.inputs, job.output_spec)}
        objects = inputs["document"]["objects"]
        return Prepared(inputs, await fetch_images(objects, job.workspace_id, job_io))


def _formats(inputs: dict[str, Any], output_spec: dict[str, Any]) -> list[str]:
    """Return the formats from export_format or output_spec."""
    named, listed = inputs["export_format"], output_spec["formats"]
    if named is not None and listed and named not in listed:
        raise InvalidRequest(
            f"export_format is {named}, but the formats of output_spec are {', '.join(listed)}."
        )
    wanted = set(listed) or {named or FORMATS[0]}
    return [name for name in FORMATS if name in wanted]
