"""Send a stored file, whole or a range of it.

The bytes are untrusted: they are sent as an attachment, with their digest as the ETag, and a
browser that shows them anyway runs no script in them.
"""

import asyncio
import re
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from ade.domain.errors import NotFound

OCTETS = "application/octet-stream"
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache",
}
_ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def download(
    request: Request, path: Path, *, digest: str, name: str, content_type: str | None = None
) -> Response:
    """Respond with a file, a range of it, or 304 if the client has it already."""
    tag = f'"{digest}"'
    # Set as a header, so that Starlette adds no character set.
    headers = {**SAFE, "ETag": tag, "Content-Type": content_type or OCTETS}
    if has_already(request, tag):
        return Response(status_code=304, headers=headers)
    try:
        facts = await asyncio.to_thread(path.stat)
    except FileNotFoundError:
        raise NotFound("The content of this file is not in the storage any more.") from None
    answer = _File(path, headers=headers, filename=name, stat_result=facts)
    answer.ranged = _is_ranged(request, tag, facts.st_size)
    return answer


def has_already(request: Request, tag: str) -> bool:
    """Tell whether If-None-Match names the current ETag."""
    known = request.headers.get("if-none-match")
    if known is None:
        return False
    return known.strip() == "*" or tag in [
        one.strip().removeprefix("W/") for one in known.split(",")
    ]


class _File(FileResponse):
    """Respond with a range only if the request has one that can be served."""

    ranged = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        if not self.ranged:
            headers = [one for one in scope["headers"] if one[0] not in (b"range", b"if-range")]
            scope = {**scope, "headers": headers}
        await super().__call__(scope, receive, send)


def _is_ranged(request: Request, tag: str, size: int) -> bool:
    """Tell whether a requested range can be served; raise 416 if it begins after the end."""
    requested = request.headers.get("range")
    if requested is None or request.headers.get("if-range", tag) != tag:
        return False
    found = _ONE_RANGE.fullmatch(requested.strip())
    if found is None or found[0] == "bytes=-":
        return False  # several ranges, or an unknown unit: the whole file may be sent instead
    first, last = found.groups()
    if first and last and int(last) < int(first):
        return False
    beyond = int(first) >= size if first else int(last) == 0 or size == 0
    if beyond:
        raise HTTPException(
            416,
            "The range begins after the end of the file.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return True
