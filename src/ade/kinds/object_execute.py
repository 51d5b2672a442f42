"""`object_execute`: run a cell of Python behind walls."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_serializer, model_validator

from ade.kinds.kind import Kind

SOURCE_CHARS_MAX = 500_000
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"


class Content(BaseModel):
    """Hold a cell's source."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["python"]
    value: str = Field(max_length=SOURCE_CHARS_MAX)


class Runtime(BaseModel):
    """Say how the cell is run."""

    model_config = ConfigDict(extra="forbid")

    language: Literal["python"] = "python"
    entrypoint: str = Field(default="main", pattern=rf"^{NAME}$")
    parameters: dict[str, Any] = Field(default_factory=dict)


class CodeObject(BaseModel):
    """Hold a code object of a document, in the words of the execution contract."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["code"] = "code"
    content: Content
    runtime: Runtime = Field(default_factory=Runtime)


class ExecuteInputs(BaseModel):
    """Give the source and its parameters, either plainly or as an object of a document."""

    model_config = ConfigDict(extra="forbid")

    source: str | None = Field(
        default=None, max_length=SOURCE_CHARS_MAX, description="the cell; or give an object"
    )
    parameters: dict[str, Any] = Field(
        default_factory=dict,
        description="names that the cell finds, and what `main` is called with",
    )
    entrypoint: str = Field(
        default="main",
        pattern=rf"^{NAME}$",
        description="the function whose value is the result; without it, the last expression's",
    )
    object: CodeObject | None = Field(default=None, description="the cell as an object")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.source is None) == (self.object is None):
            raise ValueError("give either source or object")
        if self.object is not None and self.model_fields_set & {"parameters", "entrypoint"}:
            raise ValueError("an object has its parameters and entrypoint in its runtime")
        return self

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        """Say the same thing in one way: two spellings of one cell are the same work."""
        if self.object is not None:
            runtime = self.object.runtime
            return {
                "source": self.object.content.value,
                "parameters": runtime.parameters,
                "entrypoint": runtime.entrypoint,
            }
        return {
            "source": self.source,
            "parameters": self.parameters,
            "entrypoint": self.entrypoint,
        }


class ObjectExecute(Kind):
    """Run a cell of Python; its value is the result."""

    name = "object_execute"
    inputs = ExecuteInputs
    entry = "ade_engine.cell"
    env_version = "python-cell@1"
