"""`echo`: return a value. It runs only ADE's own code, to check that an installation works."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ade.kinds.kind import Kind

SLEEP_MS_MAX = 3_600_000
STEPS_MAX = 10_000


class EchoInputs(BaseModel):
    """The value to return, and what happens before it is returned."""

    model_config = ConfigDict(extra="forbid")

    value: Any = None
    sleep_ms: int = Field(default=0, ge=0, le=SLEEP_MS_MAX, description="how long the job takes")
    steps: int = Field(
        default=0, ge=0, le=STEPS_MAX, description="how many progress reports the job sends"
    )
    print: str = Field(default="", max_length=100_000, description="what to write to stdout")
    fail: Literal["", "raise", "exit", "abort"] = Field(
        default="", description="how the job fails, if it does"
    )


class Echo(Kind):
    """Return a value."""

    name = "echo"
    inputs = EchoInputs
    entry = "ade_engine.entry.echo"
    env_version = "echo@1"
    trusted = True
