"""Describe the bodies that routes of the worker contract read themselves, and their answers."""

from typing import Any

from pydantic import TypeAdapter

_WHY = {
    401: "The key is missing or not valid",
    403: "The key or the worker may not do this",
    404: "There is no such job",
    409: "The status may not follow, or the job is held by another worker",
    422: "The body is not valid",
}


def described(message: TypeAdapter[Any], *refusals: int, **answers: str) -> dict[str, Any]:
    """Return what a route's decorator takes: its JSON body, and its answers by status (`s200`)."""
    schema = message.json_schema()
    found: dict[int | str, dict[str, Any]] = {
        int(status[1:]): {"description": text} for status, text in answers.items()
    }
    found |= {status: {"description": _WHY[status]} for status in refusals}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"openapi_extra": {"requestBody": body}, "responses": found}
