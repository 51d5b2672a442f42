"""Responses that are ready to be sent: what the fast path sends, and bodies as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Send

Headers = tuple[tuple[bytes, bytes], ...]

JSON = "application/json"
PROBLEM = "application/problem+json"
NO_CONTENT = 204


class RawResponse(NamedTuple):
    """Hold a response; content type and length are added when it is sent."""

    status: int
    body: bytes
    headers: Headers = ()
    content_type: str = JSON

    async def send(self, send: Send, *more: tuple[bytes, bytes]) -> None:
        """Send the response, with some more headers."""
        described: Headers = (
            (b"content-type", self.content_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
        )
        # RFC 9110: an answer that has no body has no length either.
        headers = [*(() if self.status == NO_CONTENT else described), *self.headers, *more]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def as_response(self) -> Response:
        """Return the response in the form in which FastAPI's routes return it."""
        response = Response(self.body, self.status, media_type=self.content_type)
        response.raw_headers.extend(self.headers)
        return response


def json_response(
    body: Mapping[str, Any] | Sequence[Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Make a response with a body as JSON."""
    return Response(json.dumps(body), status, headers, JSON)
