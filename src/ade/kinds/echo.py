"""`echo`: give back a value. It runs ADE's own code only, to see that an installation works."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ade.kinds.kind import Kind

SLEEP_MS_MAX = 3_600_000
STEPS_MAX = 10_000


class EchoInputs(BaseModel):
    """Say what to give back, and how hard to make it."""

    model_config = ConfigDict(extra="forbid")

    value: Any = None
    sleep_ms: int = Field(default=0, ge=0, le=SLEEP_MS_MAX, description="how long to take")
    steps: int = Field(default=0, ge=0, le=STEPS_MAX, description="progress reports on the way")
    print: str = Field(default="", max_length=100_000, description="what to write to stdout")
    fail: Literal["", "raise", "exit", "abort"] = Field(default="", description="how to go wrong")


class Echo(Kind):
    """Give back a value."""

    name = "echo"
    inputs = EchoInputs
    entry = "ade_engine.entry.echo"
    env_version = "echo@1"
    trusted = True
