"""The OpenAPI document: what FastAPI derives, and what the routes add."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from ade.http.schemas.problems import Problem

REF = "#/components/schemas/{model}"
ROOT = REF.replace("{model}", "")
DESCRIPTION = """Durable jobs over HTTP.

Send an API key as `Authorization: Bearer <key>` or as the password of HTTP Basic. `{ws}` is the
slug or the id of a workspace. Every error is a problem of RFC 9457 with a stable `code`.

A browser that signed in at `/login` sends the cookie of its session instead (over TLS it is named
`__Host-ade_session`). Its requests that change something need the header `X-CSRF-Token` as well,
with the token that `GET /api/v1/session` returns."""
SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "ade_session"},
}

_bodies: dict[str, Any] = {}


def takes(*kinds: Any, required: bool = True) -> dict[str, Any]:
    """Describe the JSON body of a route that reads it itself."""
    found = []
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema(ref_template=REF)
        _bodies.update(schema.pop("$defs", {}))
        _bodies[kind.__name__] = schema
        found.append({"$ref": REF.format(model=kind.__name__)})
    schema = found[0] if len(found) == 1 else {"anyOf": found}
    return {
        "requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}
    }


def headers_taken(**described: str) -> list[dict[str, Any]]:
    """Describe headers that a route reads itself; `_` in a name becomes `-`."""
    return [
        {
            "name": name.replace("_", "-"),
            "in": "header",
            "required": False,
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in described.items()
    ]


def answers(
    status: int, model: Any, text: str, *problems: int, **more: Any
) -> dict[int | str, dict[str, Any]]:
    """Describe a route's responses: one that succeeds, and the problems that it may answer with."""
    good: dict[str, Any] = {"description": text, **more}
    if model is not None:
        good["model"] = model
    found: dict[int | str, dict[str, Any]] = {status: good}
    for code in problems:
        found[code] = _problem()
    return found


def _problem() -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": REF.format(model="Problem")}}}
    return {"description": "A problem", "content": content}


def say_open(schema: dict[str, Any]) -> None:
    """Say that an object may get further fields, so that clients do not refuse them."""
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", True)


def install(app: FastAPI) -> None:
    """Replace the app's OpenAPI document by ours."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=DESCRIPTION,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas |= {name: _bodies[name] for name in sorted(_bodies)}
    schemas["Problem"] = TypeAdapter(Problem).json_schema(ref_template=REF)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for schema in schemas.values():
        say_open(schema)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = SECURITY
    for path in document["paths"].values():
        for operation in path.values():
            _finish(operation)
    return document


def _finish(operation: dict[str, Any]) -> None:
    """Add what all operations have: common problems, and authentication unless it is public."""
    known = operation["responses"]
    validation = known.get("422", {}).get("content", {}).get("application/json")
    if validation is not None:
        known["422"] = _problem()
    if operation.pop("x-public", False):
        operation["security"] = []
    else:
        operation["security"] = [{name: []} for name in SECURITY]
        known.setdefault("401", _problem())
    known.setdefault("500", _problem())
    known.setdefault("503", _problem())
    operation["responses"] = dict(sorted(known.items()))
