"""One request and its answer, sent again where that is safe."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ade.client.core.problems import error_of, not_ade, retry_after_seconds
from ade.client.core.retry import Refusal, Retrying, RetryPolicy
from ade.client.core.steps import (
    Call,
    Method,
    Now,
    Query,
    Reply,
    Request,
    Send,
    Sleep,
    TransportFailed,
)
from ade.client.errors import ClientError, IdempotencyInFlight, NotFound, ServerUnreachable

JSON = "application/json"


def request_of(
    method: Method,
    path: str,
    *,
    query: Query = (),
    json_body: Any = None,
    headers: Mapping[str, str] | None = None,
    repeatable: bool | None = None,
    timeout_seconds: float | None = None,
) -> Request:
    """Make a request; without a key of its own a POST is not repeatable."""
    sent = {name: value for name, value in (headers or {}).items() if value}
    body = None
    if json_body is not None:
        body = json.dumps(json_body, allow_nan=False).encode()
        sent["Content-Type"] = JSON
    if repeatable is None:
        repeatable = method != "POST" or "Idempotency-Key" in sent
    return Request(method, path, query, sent, body, timeout_seconds, repeatable)


def send(request: Request, policy: RetryPolicy) -> Call[Reply]:
    """Send a request until it is answered for good; raise what the answer says is wrong."""
    retrying = Retrying(policy, repeatable=request.repeatable, random=random.random)
    lost = False
    error: ClientError
    while True:
        try:
            reply: Reply = yield Send(request)
        except TransportFailed as failed:
            refusal, error = Refusal(sent=failed.sent), unreachable(failed)
            lost = lost or failed.sent
        else:
            if reply.status < 400:
                return reply
            found = error_of(request, reply)
            if lost and request.method == "DELETE" and isinstance(found, NotFound):
                return replace(reply, status=204)  # the answer to the first try was lost
            refusal = Refusal(
                reply.status,
                retry_after_seconds(reply),
                in_flight=isinstance(found, IdempotencyInFlight),
            )
            error = found
        pause = retrying.after(refusal, (yield Now()))
        if pause is None:
            raise error
        yield Sleep(pause)


def call_json(request: Request, policy: RetryPolicy) -> Call[Any]:
    """Send a request and return the JSON of its answer; None if there is no body."""
    reply = yield from send(request, policy)
    if not reply.body:
        return None
    try:
        return reply.json()
    except ValueError:
        raise not_ade(request, reply) from None


def call_text(request: Request, policy: RetryPolicy) -> Call[str]:
    """Send a request and return its answer as text."""
    reply = yield from send(request, policy)
    return reply.body.decode(errors="replace")


def call_bytes(request: Request, policy: RetryPolicy) -> Call[bytes]:
    """Send a request and return the bytes of its answer."""
    reply = yield from send(request, policy)
    return reply.body


def unreachable(failed: TransportFailed) -> ServerUnreachable:
    """Say that the server does not answer."""
    return ServerUnreachable(
        f"The server does not answer ({failed.reason}). Check that it runs, and its address."
    )
