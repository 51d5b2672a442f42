"""`thumbnail_generate`: draw thumbnails of a page of a document, or of one object."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ade.kinds.document import (
    FIRST_ERROR,
    PRELOAD,
    DocumentContent,
    DocumentObject,
    ViewMode,
    fetch_images,
    with_library_versions,
)
from ade.kinds.kind import JobInputs, JobIO, Kind, OutputSpec, Prepared

SIDE_PIXELS_MAX = 4_096
SIZES_MAX = 10
PIXELS_MAX = 40_000_000
PAGE_MAX = 10_000

_STRICT = ConfigDict(extra="forbid")


class ThumbnailSize(BaseModel):
    """The size of a thumbnail in pixels."""

    model_config = _STRICT

    width: int = Field(ge=1, le=SIDE_PIXELS_MAX)
    height: int = Field(ge=1, le=SIDE_PIXELS_MAX)


class ThumbnailInputs(BaseModel):
    """A document and a page, or an object, and the sizes of the thumbnails."""

    model_config = _STRICT

    document: DocumentContent | None = Field(default=None, description="or give an object")
    page: int = Field(default=1, ge=1, le=PAGE_MAX, description="of the document, counted from 1")
    view_mode: ViewMode = "document"
    object: DocumentObject | None = None
    sizes: Annotated[list[ThumbnailSize], FIRST_ERROR] = Field(min_length=1, max_length=SIZES_MAX)
    background: Literal["white", "transparent"] = "white"

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if (self.document is None) == (self.object is None):
            raise ValueError("give either document or object")
        if self.object is not None and self.model_fields_set & {"page", "view_mode"}:
            raise ValueError("page and view_mode apply to documents, not to objects")
        return self

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        sizes = [(size.width, size.height) for size in self.sizes]
        if len(set(sizes)) < len(sizes):
            raise ValueError("a size is listed twice")
        if sum(width * height for width, height in sizes) > PIXELS_MAX:
            raise ValueError(f"the sizes have more than {PIXELS_MAX:,} pixels in total")
        return self


class ThumbnailOutputs(OutputSpec):
    """The format of thumbnails, which is always PNG."""

    formats: list[Literal["png"]] = Field(default=["png"], min_length=1, max_length=1)  # type: ignore[assignment]


class ThumbnailGenerate(Kind):
    """Draw a page of a document, or one object, as PNG of given sizes."""

    name = "thumbnail_generate"
    inputs = ThumbnailInputs
    output_spec = ThumbnailOutputs
    entry = "ade_engine.entry.thumbnail"
    env_version = with_library_versions("thumbnail@3")
    preload = PRELOAD

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Fetch the images by digest; the sandbox has no access to the blob store."""
        document, one_object = job.inputs["document"], job.inputs["object"]
        objects = [one_object] if document is None else document["objects"]
        files = await fetch_images(objects, job.workspace_id, job_io)
        return Prepared(job.inputs, files)
