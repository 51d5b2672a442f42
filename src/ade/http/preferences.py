"""Read the headers that say how a request should be answered: `Prefer`, `Idempotency-Key`."""

import re
from typing import NamedTuple

from starlette.types import Scope

from ade.domain.errors import InvalidRequest

WAIT_SECONDS_MAX = 60
KEY_CHARS_MAX = 200
_WAIT = re.compile(rb"(?:^|[,;\s])wait=(\d{1,9})(?:$|[,;\s])", re.IGNORECASE)
_REPRESENTATION = re.compile(rb"(?:^|[,;\s])return=representation(?:$|[,;\s])", re.IGNORECASE)
_KEY = re.compile(r"[ -~]{1,200}")


class Preferences(NamedTuple):
    """Hold the headers that say how a request should be answered (RFC 7240)."""

    wait_seconds: int = 0
    wants_result: bool = False
    idempotency_key: str | None = None


def preferences_of(scope: Scope) -> Preferences:
    """Read how long the client would wait and for what, and its Idempotency-Key."""
    wait_seconds, wants_result, key = 0, False, None
    for name, value in scope["headers"]:
        if name == b"prefer":
            wait = _WAIT.search(value)
            if wait is not None:
                wait_seconds = min(int(wait[1]), WAIT_SECONDS_MAX)
            wants_result = wants_result or _REPRESENTATION.search(value) is not None
        elif name == b"idempotency-key":
            key = value.decode("latin-1")
            if not _KEY.fullmatch(key):
                raise InvalidRequest(
                    f"Idempotency-Key has 1 to {KEY_CHARS_MAX} printable ASCII characters.",
                    errors=[{"field": "Idempotency-Key", "message": "not allowed"}],
                )
    return Preferences(wait_seconds, wants_result, key)
