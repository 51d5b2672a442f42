"""Send a file as a form, in pieces, with its digest computed while it is sent."""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ade.client.core.exchange import call_json
from ade.client.core.retry import RetryPolicy
from ade.client.core.steps import Call, Request
from ade.client.errors import DigestMismatch

PIECE_BYTES = 256 * 1024
OCTETS = "application/octet-stream"
# Called with the bytes sent so far and all of them.
Progress = Callable[[int, int], None]
Source = str | os.PathLike[str] | bytes | BinaryIO


class FormBody:
    """A form with one file, which can be sent again from its beginning."""

    def __init__(
        self, source: Source, name: str, content_type: str, on_progress: Progress | None
    ) -> None:
        boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={boundary}"
        quoted = name.replace("\\", "_").replace('"', "%22").replace("\r", " ").replace("\n", " ")
        self._head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
            f"Content-Type: {content_type}\r\n\r\n"
        ).encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self._source = source
        self._start = 0 if isinstance(source, str | os.PathLike | bytes) else source.tell()
        self.file_bytes = _size(source, self._start)
        self.size_bytes = len(self._head) + self.file_bytes + len(self._tail)
        self._on_progress = on_progress
        self.digest: str | None = None

    def pieces(self) -> Iterator[bytes]:
        """Read the form from its beginning, and note the digest of the file at its end."""
        self.digest = None
        computed, done = hashlib.sha256(), 0
        yield self._head
        for piece in _pieces(self._source, self._start):
            computed.update(piece)
            done += len(piece)
            if done > self.file_bytes:
                raise DigestMismatch("The file grew while it was uploaded; nothing was kept.")
            yield piece
            if self._on_progress is not None:
                self._on_progress(done, self.file_bytes)
        if done < self.file_bytes:
            raise DigestMismatch("The file shrank while it was uploaded; nothing was kept.")
        self.digest = f"sha256:{computed.hexdigest()}"
        yield self._tail


def name_of(source: Source) -> str:
    """Return the name that an upload gets if none is given."""
    if isinstance(source, str | os.PathLike):
        return Path(source).name
    name = None if isinstance(source, bytes) else getattr(source, "name", None)
    return Path(name).name if isinstance(name, str) else "document"


def upload(path: str, body: FormBody, policy: RetryPolicy) -> Call[Mapping[str, Any]]:
    """Upload a file; raise DigestMismatch if the server stored other bytes.

    An upload that is cut leaves nothing and is sent again. If only its answer was lost, the second
    one makes a second document of the same bytes, which are stored once.
    """
    headers = {"Content-Type": body.content_type}
    request = Request("POST", path, headers=headers, body=body, repeatable=True)
    made: Mapping[str, Any] = yield from call_json(request, policy)
    if made.get("digest") != body.digest:
        raise DigestMismatch(
            f"The server stored {made.get('digest')} as {made.get('document_id')}, and"
            f" {body.digest} was sent."
        )
    return made


def _size(source: Source, start: int) -> int:
    if isinstance(source, bytes):
        return len(source)
    if isinstance(source, str | os.PathLike):
        return Path(source).stat().st_size
    size = source.seek(0, os.SEEK_END) - start
    source.seek(start)
    return size


def _pieces(source: Source, start: int) -> Iterator[bytes]:
    if isinstance(source, bytes):
        for at in range(0, len(source), PIECE_BYTES):
            yield source[at : at + PIECE_BYTES]
    elif isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
    else:
        source.seek(start)
        while piece := source.read(PIECE_BYTES):
            yield piece
