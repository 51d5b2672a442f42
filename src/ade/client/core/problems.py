"""Turn an answer that is an error into an exception."""

import json
from collections.abc import Mapping
from typing import Any

from ade.client.core.steps import Reply, Request
from ade.client.errors import (
    BY_CODE,
    BY_STATUS,
    ClientError,
    NoSuchPath,
    NotAnAdeServer,
    Problem,
)

NO_SUCH_PATH = "There is no such path."
TEXT_SHOWN_MAX = 200


def error_of(request: Request, reply: Reply) -> ClientError:
    """Return the exception for an answer that is an error."""
    body = _problem(reply)
    if body is None:
        return not_ade(request, reply)
    code, status = str(body.get("code")), reply.status
    kind = BY_CODE.get(code) or BY_STATUS.get(status) or Problem
    detail = str(body.get("detail") or body.get("title") or f"status {status}")
    if status == 404 and detail == NO_SUCH_PATH:
        kind = NoSuchPath
        detail = (
            f"The server does not know {request.method} {request.path}: it is probably of another"
            " version than this client. Install the client of the server's version."
        )
    errors = body.get("errors")
    return kind(
        detail,
        code=code,
        status=status,
        title=str(body.get("title") or ""),
        errors=errors if isinstance(errors, list) else (),
        trace_id=body.get("trace_id"),
        retry_after_seconds=retry_after_seconds(reply),
    )


def not_ade(request: Request, reply: Reply) -> NotAnAdeServer:
    """Say that something else answered."""
    kind = reply.headers.get("content-type", "").partition(";")[0] or "no content type"
    return NotAnAdeServer(
        f"{request.method} {request.path} was answered with {reply.status} and {kind}, which is"
        " not what ADE answers. Check the address of the server, and what is between."
    )


def retry_after_seconds(reply: Reply) -> float | None:
    """Read Retry-After; ADE sends seconds, and a date is ignored."""
    try:
        return float(reply.headers["retry-after"])
    except (KeyError, ValueError):
        return None


def _problem(reply: Reply) -> Mapping[str, Any] | None:
    try:
        body = json.loads(reply.body)
    except ValueError:
        return None
    return body if isinstance(body, dict) and "code" in body else None
