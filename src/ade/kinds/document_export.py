"""`document_export`: turn a document into PDF, HTML and a bundle of its files."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ade.domain.errors import InvalidRequest
from ade.kinds.document import (
    FIRST_ERROR,
    PRELOAD,
    DocumentContent,
    OnceEach,
    ViewMode,
    fetch_images,
    input_path,
    with_library_versions,
)
from ade.kinds.kind import Digest, JobInputs, JobIO, Kind, OutputSpec, Prepared

FORMATS = ("pdf", "html", "bundle")
BUNDLE = "bundle"
ARTIFACTS_MAX = 100
# A name that is one on every system, in one folder; it has no control characters and no dot first.
FileName = Annotated[
    str,
    StringConstraints(pattern=r"^[^./\\:*?\"<>|\x00-\x1f\x7f][^/\\:*?\"<>|\x00-\x1f\x7f]{0,199}$"),
]


class BundledArtifact(BaseModel):
    """A file of the workspace to put in a bundle."""

    model_config = ConfigDict(extra="forbid")

    digest: Digest = Field(description="of a document or an artifact in the workspace")
    name: FileName


class ExportInputs(BaseModel):
    """The document, and how it is shown."""

    model_config = ConfigDict(extra="forbid")

    document: DocumentContent
    export_format: Literal["pdf", "html", "bundle"] | None = Field(
        default=None, description="or list formats in the output_spec; the default is pdf"
    )
    view_mode: ViewMode = "document"
    include_speaker_notes: bool = False
    artifacts: Annotated[list[BundledArtifact], FIRST_ERROR] = Field(
        default=[], max_length=ARTIFACTS_MAX, description="further files for a bundle"
    )

    @model_validator(mode="after")
    def _distinct_names(self) -> Self:
        # Without regard to case, as some file systems compare names.
        if len({one.name.casefold() for one in self.artifacts}) < len(self.artifacts):
            raise ValueError("two artifacts have the same name")
        return self


class ExportOutputs(OutputSpec):
    """The formats of the export."""

    formats: Annotated[list[Literal["pdf", "html", "bundle"]], FIRST_ERROR, OnceEach] = Field(  # type: ignore[assignment]
        default=[], max_length=len(FORMATS)
    )


class DocumentExport(Kind):
    """Turn a document into PDF and HTML, as pages or as slides, and into a bundle."""

    name = "document_export"
    inputs = ExportInputs
    output_spec = ExportOutputs
    entry = "ade_engine.entry.export"
    env_version = with_library_versions("export@3")
    preload = PRELOAD

    def check(self, inputs: dict[str, Any], output_spec: dict[str, Any]) -> None:
        """Reject formats that contradict each other, and artifacts without a bundle."""
        if BUNDLE not in _formats(inputs, output_spec) and inputs["artifacts"]:
            raise InvalidRequest("artifacts are for a bundle, and it is not among the formats.")

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Fetch images and artifacts by digest; the sandbox has no access to the blob store."""
        inputs = {**job.inputs, "formats": _formats(job.inputs, job.output_spec)}
        files = await fetch_images(inputs["document"]["objects"], job.workspace_id, job_io)
        for one in inputs["artifacts"]:
            one["file"] = path = input_path(one["digest"])
            if path not in files:
                files[path] = await job_io.blob(job.workspace_id, one["digest"])
        return Prepared(inputs, files)


def _formats(inputs: dict[str, Any], output_spec: dict[str, Any]) -> list[str]:
    """Return the formats from export_format or output_spec."""
    named, listed = inputs["export_format"], output_spec["formats"]
    if named is not None and listed and named not in listed:
        raise InvalidRequest(
            f"export_format is {named}, but the formats of output_spec are {', '.join(listed)}."
        )
    wanted = set(listed) or {named or FORMATS[0]}
    return [name for name in FORMATS if name in wanted]
