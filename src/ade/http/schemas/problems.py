"""An error as the API shows it (RFC 9457)."""

from typing import Any, NotRequired

from typing_extensions import TypedDict


class Problem(TypedDict):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[list[dict[str, Any]]]
    trace_id: str
