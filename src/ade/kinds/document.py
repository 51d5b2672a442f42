"""A document in the words of a submission: objects in their order, each within limits."""

import json
import math
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ade.kinds.kind import Digest, Workroom

OBJECTS_MAX = 2_000
DOCUMENT_CHARS_MAX = 2_000_000
TITLE_CHARS_MAX = 500
AUTHORS_MAX = 100
AUTHOR_CHARS_MAX = 200
TEXT_CHARS_MAX = 100_000
LATEX_CHARS_MAX = 5_000
CODE_CHARS_MAX = 200_000
OUTPUT_CHARS_MAX = 100_000
NOTES_CHARS_MAX = 20_000
CAPTION_CHARS_MAX = 2_000
COLUMNS_MAX = 50
ROWS_MAX = 5_000
CELLS_MAX = 10_000
CELL_CHARS_MAX = 5_000
IMAGES_MAX = 100
IMAGE_BASE64_CHARS_MAX = 14_000_000
WIDTH_PERCENT_MIN = 5
WARM = ("ade_engine.preload.documents",)
MADE_BY = ("typst", "ziamath", "latex2mathml", "markdown-it-py")


def _cell(value: Any) -> Any:
    """Take what a table can show; anything else is one error, where a union would tell five."""
    if isinstance(value, str):
        if len(value) > CELL_CHARS_MAX:
            raise PydanticCustomError("cell", f"a cell has more than {CELL_CHARS_MAX:,} characters")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise PydanticCustomError("cell", "a cell holds a number that is too large, or none")
    elif value is not None and not isinstance(value, int):
        raise PydanticCustomError("cell", "a cell holds a text, a number, true, false or null")
    return value


def _once_each(formats: list[str]) -> list[str]:
    if len(set(formats)) < len(formats):
        raise ValueError("a format is named twice")
    return formats


_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
# Of what is wrong, the first is told: a long list of wrong things would take minutes to tell all.
FIRST_ERROR = FailFast()
OnceEach = AfterValidator(_once_each)
ObjectId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
SlideName = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Author = Annotated[str, StringConstraints(min_length=1, max_length=AUTHOR_CHARS_MAX)]
Caption = Annotated[str, StringConstraints(max_length=CAPTION_CHARS_MAX)]
Written = Annotated[str, StringConstraints(max_length=OUTPUT_CHARS_MAX)]
Heading = Annotated[str, StringConstraints(max_length=CELL_CHARS_MAX)]
Cell = Annotated[
    Any,
    PlainValidator(_cell),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "maxLength": CELL_CHARS_MAX},
                *({"type": name} for name in ("boolean", "integer", "number", "null")),
            ]
        }
    ),
]
Row = Annotated[list[Cell], Field(max_length=COLUMNS_MAX), FIRST_ERROR]
Alignment = Literal["auto", "left", "center", "right"]
ViewMode = Literal["document", "slide"]


class TextContent(BaseModel):
    """Hold running text."""

    model_config = _STRICT

    format: Literal["markdown", "plain"] = "markdown"
    value: str = Field(max_length=TEXT_CHARS_MAX)


class EquationContent(BaseModel):
    """Hold a formula."""

    model_config = _STRICT

    format: Literal["latex"] = "latex"
    value: str = Field(min_length=1, max_length=LATEX_CHARS_MAX)


class ImageContent(BaseModel):
    """Name an image: by the digest of a file of the workspace, or with its bytes."""

    model_config = _STRICT

    digest: Digest | None = Field(
        default=None, description="of a document or an artifact of the workspace"
    )
    data: str | None = Field(
        default=None, max_length=IMAGE_BASE64_CHARS_MAX, description="its bytes in base64"
    )
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"] | None = Field(
        default=None, description="what the bytes must be; needed with data"
    )
    alt: Caption = Field(default="", description="what it shows, for those who do not see it")
    caption: Caption = ""
    width_percent: int | None = Field(
        default=None,
        ge=WIDTH_PERCENT_MIN,
        le=100,
        description="of the width of the text; without it, the image's own size",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.digest is None) == (self.data is None):
            raise ValueError("give either digest or data")
        if self.data is not None and self.media_type is None:
            raise ValueError("data needs its media_type")
        return self


class CodeError(BaseModel):
    """Hold what code failed with, in the words of a job's error."""

    model_config = _STRICT

    category: Caption | None = None
    code: Caption | None = None
    message: Written
    details: dict[str, Any] = {}


class CodeOutputs(BaseModel):
    """Hold what code wrote, gave, drew or failed with."""

    model_config = _STRICT

    stdout: Written = ""
    stderr: Written = ""
    result_json: Any = None
    error: Written | CodeError | None = None
    images: Annotated[list[ImageContent], FIRST_ERROR] = Field(default=[], max_length=IMAGES_MAX)

    @field_validator("result_json", "error")
    @classmethod
    def _bounded(cls, value: Any) -> Any:
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        if len(json.dumps(plain)) > OUTPUT_CHARS_MAX:
            raise ValueError(f"it has more than {OUTPUT_CHARS_MAX:,} characters")
        return value


class CodeContent(BaseModel):
    """Hold code and what came of it; the format names its language."""

    model_config = _STRICT

    format: str = Field(default="python", pattern=r"^[A-Za-z0-9+#._\-]{1,40}$")
    value: str = Field(max_length=CODE_CHARS_MAX)
    outputs: CodeOutputs = Field(default_factory=CodeOutputs)


class TableContent(BaseModel):
    """Hold rows of values below the names of their columns."""

    model_config = _STRICT

    columns: Annotated[list[Heading], FIRST_ERROR] = Field(min_length=1, max_length=COLUMNS_MAX)
    rows: Annotated[list[Row], FIRST_ERROR] = Field(default=[], max_length=ROWS_MAX)
    alignment: list[Alignment] | None = Field(
        default=None,
        max_length=COLUMNS_MAX,
        description="of each column; auto is right for numbers and left for all else",
    )
    caption: Caption = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        width = len(self.columns)
        for number, row in enumerate(self.rows, start=1):
            if len(row) > width:
                raise ValueError(f"row {number} has {len(row)} cells, there are {width} columns")
        if width * len(self.rows) > CELLS_MAX:
            raise ValueError(f"there are more than {CELLS_MAX:,} cells")
        if self.alignment is not None and len(self.alignment) > width:
            raise ValueError("there are more alignments than columns")
        return self


class _Object(BaseModel):
    """Hold what objects of all types have."""

    model_config = _STRICT

    object_id: ObjectId | None = None
    notes: str = Field(
        default="", max_length=NOTES_CHARS_MAX, description="for the speaker, in Markdown"
    )
    slide: SlideName | int | None = Field(
        default=None, description="neighbours with the same value share a slide"
    )


class TextObject(_Object):
    """Hold a text."""

    type: Literal["text"]
    content: TextContent


class EquationObject(_Object):
    """Hold an equation."""

    type: Literal["equation"]
    content: EquationContent


class CodeObject(_Object):
    """Hold code."""

    type: Literal["code"]
    content: CodeContent


class ImageObject(_Object):
    """Hold an image."""

    type: Literal["image"]
    content: ImageContent


class TableObject(_Object):
    """Hold a table."""

    type: Literal["table"]
    content: TableContent


DocumentObject = Annotated[
    TextObject | EquationObject | CodeObject | ImageObject | TableObject,
    Field(discriminator="type"),
]


class Document(BaseModel):
    """Hold all that is exported."""

    model_config = _STRICT

    title: str = Field(default="", max_length=TITLE_CHARS_MAX)
    authors: Annotated[list[Author], FIRST_ERROR] = Field(default=[], max_length=AUTHORS_MAX)
    language: str = Field(
        default="en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z]{2})?$", description="such as de or en-GB"
    )
    objects: Annotated[list[DocumentObject], FIRST_ERROR] = Field(max_length=OBJECTS_MAX)

    @model_validator(mode="after")
    def _not_too_much(self) -> Self:
        images = sum(len(_images(one)) for one in self.objects)
        if images > IMAGES_MAX:
            raise ValueError(f"there are {images} images; there can be {IMAGES_MAX}")
        if sum(map(_chars, self.objects)) > DOCUMENT_CHARS_MAX:
            raise ValueError(f"there are more than {DOCUMENT_CHARS_MAX:,} characters")
        return self


def made_by(name: str) -> str:
    """Return a version of the environment that names the libraries that results depend on."""
    return "+".join((name, *(f"{library}{version(library)}" for library in MADE_BY)))


async def fetch_images(
    objects: list[dict[str, Any]], workspace_id: str, workroom: Workroom
) -> dict[str, Path]:
    """Find the images that objects name by digest, and tell each where it will lie."""
    files: dict[str, Path] = {}
    for image in (image for one in objects for image in _plain_images(one)):
        digest = image["digest"]
        if digest is None:
            continue
        image["file"] = place = f"inputs/{digest.partition(':')[2]}"
        if place not in files:
            files[place] = await workroom.blob(workspace_id, digest)
    return files


def _images(one: DocumentObject) -> list[ImageContent]:
    if isinstance(one, ImageObject):
        return [one.content]
    return one.content.outputs.images if isinstance(one, CodeObject) else []


def _plain_images(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if one["type"] == "image":
        yield one["content"]
    if one["type"] == "code":
        yield from one["content"]["outputs"]["images"]


def _chars(one: DocumentObject) -> int:
    """Count what is set as text; images are counted apart."""
    notes = len(one.notes)
    match one:
        case TextObject() | EquationObject():
            return notes + len(one.content.value)
        case CodeObject():
            outputs = one.content.outputs
            return notes + len(one.content.value) + len(outputs.stdout) + len(outputs.stderr)
        case TableObject():
            cells = (*one.content.columns, *(cell for row in one.content.rows for cell in row))
            return notes + sum(len(cell) for cell in cells if isinstance(cell, str))
        case ImageObject():
            return notes
