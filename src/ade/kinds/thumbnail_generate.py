"""`thumbnail_generate`: draw a page of a document, or one object, small."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ade.kinds.document import (
    FIRST_ERROR,
    WARM,
    Document,
    DocumentObject,
    ViewMode,
    fetch_images,
    made_by,
)
from ade.kinds.kind import Asked, Kind, OutputSpec, Prepared, Workroom

SIDE_PIXELS_MAX = 4_096
SIZES_MAX = 10
PIXELS_MAX = 40_000_000
PAGE_MAX = 10_000

_STRICT = ConfigDict(extra="forbid")


class Size(BaseModel):
    """Give the size of a picture in pixels."""

    model_config = _STRICT

    width: int = Field(ge=1, le=SIDE_PIXELS_MAX)
    height: int = Field(ge=1, le=SIDE_PIXELS_MAX)


class ThumbnailInputs(BaseModel):
    """Give a document and its page, or an object, and the sizes that are wanted."""

    model_config = _STRICT

    document: Document | None = Field(default=None, description="or give an object")
    page: int = Field(default=1, ge=1, le=PAGE_MAX, description="of the document, the first is 1")
    view_mode: ViewMode = "document"
    object: DocumentObject | None = None
    sizes: Annotated[list[Size], FIRST_ERROR] = Field(min_length=1, max_length=SIZES_MAX)
    background: Literal["white", "transparent"] = "white"

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if (self.document is None) == (self.object is None):
            raise ValueError("give either document or object")
        if self.object is not None and self.model_fields_set & {"page", "view_mode"}:
            raise ValueError("page and view_mode are of documents, an object has none")
        return self

    @model_validator(mode="after")
    def _not_too_much(self) -> Self:
        sizes = [(size.width, size.height) for size in self.sizes]
        if len(set(sizes)) < len(sizes):
            raise ValueError("a size is named twice")
        if sum(width * height for width, height in sizes) > PIXELS_MAX:
            raise ValueError(f"the sizes have more than {PIXELS_MAX:,} pixels together")
        return self


class ThumbnailOutputs(OutputSpec):
    """Thumbnails are PNG."""

    formats: list[Literal["png"]] = Field(default=["png"], min_length=1, max_length=1)  # type: ignore[assignment]


class ThumbnailGenerate(Kind):
    """Draw a page of a document, or one object, as PNG of given sizes."""

    name = "thumbnail_generate"
    inputs = ThumbnailInputs
    output_spec = ThumbnailOutputs
    entry = "ade_engine.entry.thumbnail"
    env_version = made_by("thumbnail@2")
    warm = WARM

    async def prepare(self, asked: Asked, workroom: Workroom) -> Prepared:
        """Fetch the images by digest, before the walls close."""
        document, single = asked.inputs["document"], asked.inputs["object"]
        objects = [single] if document is None else document["objects"]
        files = await fetch_images(objects, asked.workspace_id, workroom)
        return Prepared(asked.inputs, files)
