"""Receive an uploaded file: from the socket to the disk in chunks, never whole in memory.

The body is `multipart/form-data` with one part named `file`. Its bytes are hashed and written while
they arrive; what is too large is refused as soon as that is known, and leaves nothing behind.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ade.domain.errors import InvalidRequest, PayloadTooLarge
from ade.domain.file_names import document_name
from ade.domain.units import MIB
from ade.storage import BlobWriter

FIELD = "file"
MULTIPART = "multipart/form-data"
FORM = {
    MULTIPART: {
        "schema": {
            "type": "object",
            "required": [FIELD],
            "properties": {FIELD: {"type": "string", "format": "binary"}},
        }
    }
}
PIECE_BYTES = MIB
HEADER_BYTES_MAX = 4096
HEADERS_MAX = 8
# An upload that sends nothing for this long is ended, so that others can begin.
SILENCE_SECONDS_MAX = 60.0
# Boundaries and headers around the file.
ENVELOPE_BYTES_MAX = 64 * 1024
TYPE_CHARS_MAX = 127


async def receive_form(request: Request, writing: BlobWriter) -> tuple[str, str | None]:
    """Write the file of a multipart body; return its name and the media type that it declares."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind.decode("latin-1").lower() != MULTIPART or not boundary:
        raise HTTPException(415, f"Send {MULTIPART} with the file as {FIELD!r}.")
    refuse_length(request, writing.bytes_max, ENVELOPE_BYTES_MAX)
    form = _Form(boundary)
    async for piece in _gathered(request.stream()):
        await asyncio.to_thread(form.take, piece, writing)
        if form.read_bytes - writing.size_bytes > ENVELOPE_BYTES_MAX:
            raise PayloadTooLarge("The form has too much besides the file.")
    return form.finish()


async def receive_raw(request: Request, writing: BlobWriter) -> None:
    """Write a raw body."""
    refuse_length(request, writing.bytes_max)
    async for piece in _gathered(request.stream()):
        await asyncio.to_thread(writing.add, piece)


def refuse_length(request: Request, bytes_max: int, around: int = 0) -> None:
    """Raise if Content-Length is too large, before the body is read."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > bytes_max + around:
        raise PayloadTooLarge(f"A file may have at most {bytes_max // 1024} KiB here.")


async def _gathered(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join small chunks, so that a thread is used once per megabyte and not once per packet."""
    held = bytearray()
    async for piece in _heard(stream):
        held += piece
        if len(held) >= PIECE_BYTES:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


async def _heard(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(SILENCE_SECONDS_MAX):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise HTTPException(408, "The upload stalled.") from None
        yield piece


class _Form:
    """Parse a multipart body that holds one file and nothing else."""

    def __init__(self, boundary: bytes) -> None:
        calls: dict[str, Callable[..., Any]] = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(
                boundary,
                calls,  # type: ignore[arg-type]
                max_header_count=HEADERS_MAX,
                max_header_size=HEADER_BYTES_MAX,
            )
        except FormParserError:
            raise _malformed() from None
        self._writing: BlobWriter | None = None
        self._name, self._value = bytearray(), bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._found: tuple[str, str | None] | None = None
        self._ended = False
        self.read_bytes = 0

    def take(self, piece: bytes, writing: BlobWriter) -> None:
        """Take the next piece of the body; the file's bytes go to `writing`."""
        self.read_bytes += len(piece)
        self._writing = writing
        try:
            self._parser.write(piece)
        except FormParserError:
            raise _malformed() from None

    def finish(self) -> tuple[str, str | None]:
        """Return the file's name and type, or raise that it is missing or incomplete."""
        if self._found is None and self._ended:
            raise _field_missing()
        if self._found is None or not self._ended:
            raise _malformed()
        return self._found

    # --- what the parser calls ------------------------------------------------------------------

    def _begin(self) -> None:
        self._headers.clear()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name, file_name = options.get(b"name"), options.get(b"filename")
        if self._found is not None or name != FIELD.encode() or file_name is None:
            raise _field_missing()
        self._found = document_name(_text(file_name)), _type(self._headers.get(b"content-type"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        assert self._writing is not None
        self._writing.add(data[start:end])

    def _end(self) -> None:
        self._ended = True


def _text(name: bytes) -> str:
    """Read a file name: UTF-8, as browsers send it, else Latin-1."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _type(given: bytes | None) -> str | None:
    """Return the declared media type, if it is well-formed."""
    kind = (given or b"").decode("latin-1").partition(";")[0].strip().lower()
    main, slash, sub = kind.partition("/")
    plain = kind.isascii() and all(c.isalnum() or c in "!#$&^_.+-" for c in main + sub)
    return kind if main and slash and sub and plain and len(kind) <= TYPE_CHARS_MAX else None


def _malformed() -> InvalidRequest:
    return InvalidRequest("The body is not complete multipart/form-data.")


def _field_missing() -> InvalidRequest:
    return InvalidRequest(
        f"The body must have one part, a file named {FIELD!r}.",
        errors=[{"field": FIELD, "message": "send one file under this name, and nothing else"}],
    )
