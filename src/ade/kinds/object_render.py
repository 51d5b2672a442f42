"""`object_render`: draw a formula or a diagram."""

from importlib.metadata import version
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ade.kinds.document import FIRST_ERROR, LATEX_CHARS_MAX, OnceEach
from ade.kinds.kind import JobInputs, JobIO, Kind, OutputSpec, Prepared

DOT_CHARS_MAX = 200_000
SIZE_MIN, SIZE_MAX = 4, 200
SCALE_MIN, SCALE_MAX = 0.1, 16
HEX = r"^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"
# The libraries that draw. `dot` is a program of the host; results contain its version.
DRAWN_BY = ("ziamath", "latex2mathml", "typst")

_STRICT = ConfigDict(extra="forbid")


class LatexContent(BaseModel):
    """A formula in LaTeX."""

    model_config = _STRICT

    format: Literal["latex"]
    value: str = Field(min_length=1, max_length=LATEX_CHARS_MAX)


class DotContent(BaseModel):
    """A diagram in DOT, the language of Graphviz."""

    model_config = _STRICT

    format: Literal["dot"]
    value: str = Field(min_length=1, max_length=DOT_CHARS_MAX)


class Equation(BaseModel):
    """An equation."""

    model_config = _STRICT

    type: Literal["equation"]
    content: LatexContent


class Diagram(BaseModel):
    """A diagram."""

    model_config = _STRICT

    type: Literal["diagram"]
    content: DotContent


class RenderInputs(BaseModel):
    """The object, and how it is drawn."""

    model_config = _STRICT

    object: Annotated[Equation | Diagram, Field(discriminator="type")]
    display: bool | None = Field(
        default=None,
        description="for an equation: true sets it on its own line, false in a line of text; "
        "the default is true",
    )
    font_size: float | None = Field(
        default=None,
        ge=SIZE_MIN,
        le=SIZE_MAX,
        description="CSS pixels; the default is 16 for equations and 18.67 (14 pt) for diagrams",
    )
    color: str | None = Field(
        default=None,
        pattern=HEX,
        description="#rrggbb instead of black; the default is the colour of the text around it",
    )
    scale: float = Field(
        default=2, ge=SCALE_MIN, le=SCALE_MAX, description="pixels of a PNG per CSS pixel"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.display is not None and self.object.type != "equation":
            raise ValueError("display is for equations only")
        return self


class RenderOutputs(OutputSpec):
    """The formats of the drawing."""

    formats: Annotated[list[Literal["svg", "png"]], FIRST_ERROR, OnceEach] = Field(  # type: ignore[assignment]
        default=["svg"], min_length=1, max_length=2
    )


class ObjectRender(Kind):
    """Draw a formula in LaTeX or a diagram in DOT as SVG and PNG."""

    name = "object_render"
    inputs = RenderInputs
    output_spec = RenderOutputs
    entry = "ade_engine.entry.render"
    env_version = "+".join(("render@3", *(f"{name}{version(name)}" for name in DRAWN_BY)))
    preload = ("ade_engine.entry.render", "ade_engine.preload.drawing")

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Add the requested formats to the inputs."""
        return Prepared({**job.inputs, "formats": job.output_spec["formats"]})
