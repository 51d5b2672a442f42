"""`object_render`: draw a formula or a diagram."""

from importlib.metadata import version
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ade.kinds.document import FIRST_ERROR, LATEX_CHARS_MAX, OnceEach
from ade.kinds.kind import Asked, Kind, OutputSpec, Prepared, Workroom

DOT_CHARS_MAX = 200_000
SIZE_MIN, SIZE_MAX = 4, 200
SCALE_MIN, SCALE_MAX = 0.1, 16
HEX = r"^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"
# What a picture is made by; `dot` is the machine's own, and results name its version.
DRAWN_BY = ("ziamath", "latex2mathml", "typst")

_STRICT = ConfigDict(extra="forbid")


class LatexContent(BaseModel):
    """Hold a formula."""

    model_config = _STRICT

    format: Literal["latex"]
    value: str = Field(min_length=1, max_length=LATEX_CHARS_MAX)


class DotContent(BaseModel):
    """Hold a diagram of Graphviz."""

    model_config = _STRICT

    format: Literal["dot"]
    value: str = Field(min_length=1, max_length=DOT_CHARS_MAX)


class Equation(BaseModel):
    """Hold an equation of a document."""

    model_config = _STRICT

    type: Literal["equation"]
    content: LatexContent


class Diagram(BaseModel):
    """Hold a diagram of a document."""

    model_config = _STRICT

    type: Literal["diagram"]
    content: DotContent


class RenderInputs(BaseModel):
    """Give the object and how it is drawn."""

    model_config = _STRICT

    object: Annotated[Equation | Diagram, Field(discriminator="type")]
    display: bool | None = Field(
        default=None,
        description="of an equation: whether it stands on a line of its own (it does) or in a text",
    )
    font_size: float | None = Field(
        default=None,
        ge=SIZE_MIN,
        le=SIZE_MAX,
        description="CSS pixels; equations have 16, diagrams 18.67 (14 pt)",
    )
    color: str | None = Field(
        default=None,
        pattern=HEX,
        description="#rrggbb for what is black; nothing is the colour of the text around it",
    )
    scale: float = Field(
        default=2, ge=SCALE_MIN, le=SCALE_MAX, description="pixels of a PNG for each CSS pixel"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.display is not None and self.object.type != "equation":
            raise ValueError("display is for equations only")
        return self


class RenderOutputs(OutputSpec):
    """Say in which formats the object is wanted."""

    formats: Annotated[list[Literal["svg", "png"]], FIRST_ERROR, OnceEach] = Field(  # type: ignore[assignment]
        default=["svg"], min_length=1, max_length=2
    )


class ObjectRender(Kind):
    """Draw a formula of LaTeX or a diagram of DOT as SVG and PNG."""

    name = "object_render"
    inputs = RenderInputs
    output_spec = RenderOutputs
    entry = "ade_engine.entry.render"
    env_version = "+".join(("render@2", *(f"{name}{version(name)}" for name in DRAWN_BY)))
    warm = ("ade_engine.entry.render", "ade_engine.preload.drawing")

    async def prepare(self, asked: Asked, workroom: Workroom) -> Prepared:
        """Say which formats are wanted beside what is drawn."""
        return Prepared({**asked.inputs, "formats": asked.output_spec["formats"]})
