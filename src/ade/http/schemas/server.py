"""What a server says of itself: its health, and the JSON Schemas that it serves."""

from typing import Literal

from typing_extensions import TypedDict

HealthStatus = Literal["ok", "degraded", "down"]


class ComponentBody(TypedDict):
    """How one part is."""

    name: str
    status: HealthStatus
    detail: str


class HealthBody(TypedDict):
    """How the server is."""

    status: HealthStatus
    components: list[ComponentBody]


class SchemaName(TypedDict):
    """Where a JSON Schema is."""

    name: str
    url: str


class SchemaPage(TypedDict):
    """The JSON Schemas of the execution contract."""

    items: list[SchemaName]
    next_cursor: None
