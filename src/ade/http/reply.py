"""An answer as the hot routes make it: status, body and headers, ready to be sent."""

from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Send

Headers = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
PROBLEM = b"application/problem+json"


class Reply(NamedTuple):
    """Hold an answer; content type and length are added when it is sent."""

    status: int
    body: bytes
    headers: Headers = ()
    content_type: bytes = JSON

    async def send(self, send: Send, *more: tuple[bytes, bytes]) -> None:
        """Send the answer, with some more headers."""
        headers = [
            (b"content-type", self.content_type),
            (b"content-length", b"%d" % len(self.body)),
            *self.headers,
            *more,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def as_response(self) -> Response:
        """Return the answer as routes of FastAPI give it."""
        response = Response(self.body, self.status, media_type=self.content_type.decode())
        response.raw_headers.extend(self.headers)
        return response
