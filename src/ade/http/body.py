"""Read a request's JSON body, up to a size limit."""

from typing import TypeVar
from urllib.parse import parse_qsl

from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from ade.app.validation import ESCAPED_NUL, invalid_body, reject_nul
from ade.domain.errors import InvalidRequest, PayloadTooLarge

SMALL_BODY_BYTES_MAX = 64 * 1024
FORM = "application/x-www-form-urlencoded"
FORM_FIELDS_MAX = 20
Value = TypeVar("Value")


async def read_body(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    """Read a JSON body, or raise: 413 as soon as it is known to be too large, 415 if not JSON."""
    for name, value in scope["headers"]:
        if name == b"content-type" and not _is_json(value):
            raise HTTPException(415, "Send JSON: Content-Type: application/json.")
    return await _read_bytes(scope, receive, bytes_max)


async def read_raw(request: Request, bytes_max: int) -> bytes:
    """Read a body of bytes, or raise 413 as soon as it is known to be too large."""
    return await _read_bytes(request.scope, request.receive, bytes_max)


async def read_unused_body(request: Request) -> bytes:
    """Read the body of a route that needs none: it only tells repetitions of a request apart."""
    return await _read_bytes(request.scope, request.receive, SMALL_BODY_BYTES_MAX)


async def _read_bytes(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > bytes_max:
            raise _too_large(bytes_max)
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        return body
    pieces, size = [body], len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > bytes_max:
            raise _too_large(bytes_max)
    return b"".join(pieces)


def _is_json(content_type: bytes) -> bool:
    if content_type == b"application/json":
        return True
    kind = content_type.partition(b";")[0].strip().lower()
    return kind == b"application/json" or (
        kind.startswith(b"application/") and kind.endswith(b"+json")
    )


def _too_large(bytes_max: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"A request body may have at most {bytes_max // 1024} KiB here.")


async def read_small(request: Request, adapter: TypeAdapter[Value], *, empty: bytes = b"") -> Value:
    """Read a small body into a model; `empty` replaces a body that is left out."""
    body = await read_body(request.scope, request.receive, SMALL_BODY_BYTES_MAX)
    return parse(body or empty, adapter)


async def read_form(request: Request) -> dict[str, str]:
    """Read a small HTML form; of a field that occurs twice, the last counts."""
    content_type = request.headers.get("content-type", FORM)
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise HTTPException(415, f"Send a form: Content-Type: {FORM}.")
    body = await _read_bytes(request.scope, request.receive, SMALL_BODY_BYTES_MAX)
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FORM_FIELDS_MAX
        )
    except ValueError:
        raise InvalidRequest(f"A form may have at most {FORM_FIELDS_MAX} fields here.") from None
    return dict(pairs)


def parse(body: bytes, adapter: TypeAdapter[Value]) -> Value:
    """Read a value from JSON, or raise what is wrong with it."""
    try:
        value = adapter.validate_json(body)
    except ValidationError as error:
        raise invalid_body(error) from None
    except RecursionError:
        raise InvalidRequest("The body is nested too deeply.") from None
    if ESCAPED_NUL in body:
        reject_nul(value if not hasattr(value, "model_dump") else value.model_dump())
    return value
