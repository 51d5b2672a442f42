"""What the bodies of requests and responses have in common."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ade.app.times import rfc3339

SEQUENCE_MAX = 2**31 - 1
"""The highest number that the database can give a version."""

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Uuid = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class RequestModel(BaseModel):
    """Something that a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True)


def optional_time(at_us: int | None) -> str | None:
    """Write a time that may be missing."""
    return None if at_us is None else rfc3339(at_us)


def stored_json(text: str | None) -> Any:
    """Read JSON that may be missing."""
    return None if text is None else json.loads(text)
