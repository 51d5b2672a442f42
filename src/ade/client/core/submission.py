"""The bodies and headers of requests that create work."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ade.client.core.exchange import request_of
from ade.client.core.steps import Request

WAIT_SECONDS_MAX = 60
# How long an answer may take beyond the time that the server was asked to wait.
ANSWER_SECONDS = 30.0


def new_key() -> str:
    """Make an Idempotency-Key."""
    return f"client-{secrets.token_hex(16)}"


def creating(
    path: str, body: Any, *, idempotency_key: str | None = None, wait_seconds: float = 0
) -> Request:
    """Make a request that creates work: with a key, so that it can be sent again."""
    wait = min(int(wait_seconds), WAIT_SECONDS_MAX)
    return request_of(
        "POST",
        path,
        json_body=body,
        headers={
            "Idempotency-Key": idempotency_key or new_key(),
            "Prefer": f"wait={wait}" if wait > 0 else "",
        },
        timeout_seconds=wait + ANSWER_SECONDS if wait > 0 else None,
    )


def given(**fields: Any) -> dict[str, Any]:
    """Leave out the fields that were not given, and write times as texts."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in fields.items()
        if value is not None
    }


def job_body(job_type: str, inputs: Mapping[str, Any] | None, **options: Any) -> dict[str, Any]:
    """Write a job of the execution contract."""
    return {"job_type": job_type, "inputs": dict(inputs or {}), **given(**options)}
