"""The document of a submission: objects in order, each within limits."""

import json
import math
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
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

from ade.kinds.kind import Digest, JobIO

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
PRELOAD = ("ade_engine.preload.documents",)
LIBRARIES = ("typst", "ziamath", "latex2mathml", "markdown-it-py")
FONT_PACKAGES = ("noto-cjk-sans-otc", "fontpkg-noto-sans-thai", "imgui-bundle")


def _cell(value: Any) -> Any:
    """Validate a table cell; a union type would report one error per member."""
    if isinstance(value, str):
        if len(value) > CELL_CHARS_MAX:
            raise PydanticCustomError("cell", f"a cell has more than {CELL_CHARS_MAX:,} characters")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise PydanticCustomError("cell", "a number in a cell is infinite or not a number")
    elif value is not None and not isinstance(value, int):
        raise PydanticCustomError("cell", "a cell must be a string, a number, true, false or null")
    return value


def _once_each(formats: list[str]) -> list[str]:
    if len(set(formats)) < len(formats):
        raise ValueError("a format is listed twice")
    return formats


_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
# Only the first error of a list is reported: reporting all errors of a long list takes minutes.
FIRST_ERROR = FailFast()
OnceEach = AfterValidator(_once_each)
ObjectId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
SlideName = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Author = Annotated[str, StringConstraints(min_length=1, max_length=AUTHOR_CHARS_MAX)]
Caption = Annotated[str, StringConstraints(max_length=CAPTION_CHARS_MAX)]
OutputText = Annotated[str, StringConstraints(max_length=OUTPUT_CHARS_MAX)]
ColumnName = Annotated[str, StringConstraints(max_length=CELL_CHARS_MAX)]
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
TableRow = Annotated[list[Cell], Field(max_length=COLUMNS_MAX), FIRST_ERROR]
Alignment = Literal["auto", "left", "center", "right"]
NumberFormat = Literal["auto", "plain"]
ViewMode = Literal["document", "slide"]


class TextContent(BaseModel):
    """Running text."""

    model_config = _STRICT

    format: Literal["markdown", "plain"] = "markdown"
    value: str = Field(max_length=TEXT_CHARS_MAX)


class EquationContent(BaseModel):
    """A formula."""

    model_config = _STRICT

    format: Literal["latex"] = "latex"
    value: str = Field(min_length=1, max_length=LATEX_CHARS_MAX)


class ImageContent(BaseModel):
    """An image: the digest of a file in the workspace, or its bytes."""

    model_config = _STRICT

    digest: Digest | None = Field(
        default=None, description="of a document or an artifact in the workspace"
    )
    data: str | None = Field(
        default=None,
        max_length=IMAGE_BASE64_CHARS_MAX,
        description="the bytes of the image in base64",
    )
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"] | None = Field(
        default=None, description="the type of the bytes; required with data"
    )
    alt: Caption = Field(
        default="", description="alternative text for readers who do not see the image"
    )
    caption: Caption = ""
    width_percent: int | None = Field(
        default=None,
        ge=WIDTH_PERCENT_MIN,
        le=100,
        description="percent of the text width; the default is the size of the image",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.digest is None) == (self.data is None):
            raise ValueError("give either digest or data")
        if self.data is not None and self.media_type is None:
            raise ValueError("data needs a media_type")
        return self


class CodeError(BaseModel):
    """The error of code, with the fields of a job error."""

    model_config = _STRICT

    category: Caption | None = None
    code: Caption | None = None
    message: OutputText
    details: dict[str, Any] = {}


class CodeOutputs(BaseModel):
    """What code printed, returned, drew or failed with."""

    model_config = _STRICT

    stdout: OutputText = ""
    stderr: OutputText = ""
    result_json: Any = None
    error: OutputText | CodeError | None = None
    images: Annotated[list[ImageContent], FIRST_ERROR] = Field(default=[], max_length=IMAGES_MAX)

    @field_validator("result_json", "error")
    @classmethod
    def _bounded(cls, value: Any) -> Any:
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        if len(json.dumps(plain)) > OUTPUT_CHARS_MAX:
            raise ValueError(f"it has more than {OUTPUT_CHARS_MAX:,} characters")
        return value


class CodeContent(BaseModel):
    """Code and its outputs; the format is its language."""

    model_config = _STRICT

    format: str = Field(default="python", pattern=r"^[A-Za-z0-9+#._\-]{1,40}$")
    value: str = Field(max_length=CODE_CHARS_MAX)
    outputs: CodeOutputs = Field(default_factory=CodeOutputs)


class TableContent(BaseModel):
    """A table: the names of its columns and rows of values."""

    model_config = _STRICT

    columns: Annotated[list[ColumnName], FIRST_ERROR] = Field(min_length=1, max_length=COLUMNS_MAX)
    rows: Annotated[list[TableRow], FIRST_ERROR] = Field(default=[], max_length=ROWS_MAX)
    alignment: list[Alignment] | None = Field(
        default=None,
        max_length=COLUMNS_MAX,
        description="of each column; auto is right for numbers and left for anything else",
    )
    number_format: list[NumberFormat] | None = Field(
        default=None,
        max_length=COLUMNS_MAX,
        description="of each column; auto rounds and groups, plain shows numbers as they are",
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
        if max(len(self.alignment or []), len(self.number_format or [])) > width:
            raise ValueError("there are more alignments or number formats than columns")
        return self


class _Object(BaseModel):
    """The fields that objects of all types have."""

    model_config = _STRICT

    object_id: ObjectId | None = None
    notes: str = Field(
        default="", max_length=NOTES_CHARS_MAX, description="speaker notes in Markdown"
    )
    slide: SlideName | int | None = Field(
        default=None, description="adjacent objects with the same value share a slide"
    )


class TextObject(_Object):
    """A text."""

    type: Literal["text"]
    content: TextContent


class EquationObject(_Object):
    """An equation."""

    type: Literal["equation"]
    content: EquationContent


class CodeObject(_Object):
    """Code."""

    type: Literal["code"]
    content: CodeContent


class ImageObject(_Object):
    """An image."""

    type: Literal["image"]
    content: ImageContent


class TableObject(_Object):
    """A table."""

    type: Literal["table"]
    content: TableContent


DocumentObject = Annotated[
    TextObject | EquationObject | CodeObject | ImageObject | TableObject,
    Field(discriminator="type"),
]


class DocumentContent(BaseModel):
    """A document to export."""

    model_config = _STRICT

    title: str = Field(default="", max_length=TITLE_CHARS_MAX)
    authors: Annotated[list[Author], FIRST_ERROR] = Field(default=[], max_length=AUTHORS_MAX)
    language: str = Field(
        default="en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z]{2})?$", description="such as de or en-GB"
    )
    objects: Annotated[list[DocumentObject], FIRST_ERROR] = Field(max_length=OBJECTS_MAX)

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        images = sum(len(_images(one)) for one in self.objects)
        if images > IMAGES_MAX:
            raise ValueError(f"there are {images} images; at most {IMAGES_MAX} are allowed")
        if sum(map(_chars, self.objects)) > DOCUMENT_CHARS_MAX:
            raise ValueError(f"there are more than {DOCUMENT_CHARS_MAX:,} characters")
        return self


def with_library_versions(name: str) -> str:
    """Return an environment version that includes the libraries on which results depend."""
    installed = (*LIBRARIES, *filter(_is_installed, FONT_PACKAGES))
    return "+".join((name, *(f"{library}{version(library)}" for library in installed)))


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


async def fetch_images(
    objects: list[dict[str, Any]], workspace_id: str, job_io: JobIO
) -> dict[str, Path]:
    """Fetch the images that objects name by digest; set the path of each in the job folder."""
    files: dict[str, Path] = {}
    for image in (image for one in objects for image in _plain_images(one)):
        digest = image["digest"]
        if digest is None:
            continue
        image["file"] = path = input_path(digest)
        if path not in files:
            files[path] = await job_io.blob(workspace_id, digest)
    return files


def input_path(digest: str) -> str:
    """Return where a job finds the file with a digest."""
    return f"inputs/{digest.partition(':')[2]}"


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
    """Count the characters of an object; images have their own limits."""
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
