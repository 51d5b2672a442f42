"""Cut a stream of XML into pieces that begin and end between elements, and find their tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ade_engine.errors import DamagedFile, TooLarge
from ade_engine.sheets.arrays import ByteArray, IntArray
from ade_engine.sheets.byte_words import PADDING
from ade_engine.sheets.fast_path_errors import FastPathUnsupported
from ade_engine.sheets.read_limits import MIB, ReadLimits

HEAD_BYTES_MAX = 4 * MIB

_ENCODING = re.compile(rb"""<\?xml[^>]*encoding=["']([A-Za-z0-9_.-]+)""")
_USUAL = {b"utf-8", b"utf8", b"us-ascii", b"ascii"}


@dataclass(slots=True)
class Surroundings:
    """The XML before the container's opening tag and after its closing tag."""

    head: bytes = b""
    tail: bytes = b""


def element_chunks(
    stream: Iterable[bytes],
    container: bytes,
    element: bytes,
    surroundings: Surroundings,
    limits: ReadLimits,
) -> Iterator[bytes]:
    """Yield pieces of whole elements from a container, each followed by `PADDING`.

    `surroundings` receives the XML before and after the container. Raise `FastPathUnsupported` for
    XML that is not written in the usual way: with prefixes, or in another encoding than UTF-8.
    """
    source = iter(stream)
    opening, closing = b"<" + container, b"</" + container + b">"
    carry = _skip_head(source, opening, surroundings)
    if carry is None:
        surroundings.tail += _rest(source, limits)
        return
    pieces = _prepend(carry, source)
    carry = b""
    for piece in pieces:
        end = _find(closing, carry, piece)
        if end is not None:
            whole = carry + piece
            yield from _padded(whole[:end], b"", 0)
            surroundings.tail = whole[end + len(closing) :] + _rest(source, limits)
            return
        cut = piece.rfind(b"<" + element)
        if cut < 0:
            carry += piece
            if len(carry) > limits.row_bytes_max:
                size = limits.row_bytes_max // MIB
                raise TooLarge(f"a row or text is longer than {size} MiB (row_bytes_max)")
            continue
        yield from _padded(carry, piece, cut)
        carry = piece[cut:]
    raise DamagedFile("the XML is truncated")


def _skip_head(source: Iterator[bytes], opening: bytes, surroundings: Surroundings) -> bytes | None:
    """Read up to the container's content; return what was read of it, or None if it is empty."""
    head = b""
    while (at := head.find(opening)) < 0 or (end := head.find(b">", at)) < 0:
        piece = next(source, None)
        if piece is None or len(head) > HEAD_BYTES_MAX:
            raise FastPathUnsupported
        head += piece
    encoding = _ENCODING.search(head[:200])
    if b"<!" in head[:at] or (encoding and encoding[1].lower() not in _USUAL):
        raise FastPathUnsupported
    surroundings.head = head[:at]
    if head[end - 1 : end] == b"/":
        surroundings.tail = head[end + 1 :]
        return None
    return head[end + 1 :]


def _prepend(first: bytes, source: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from source


def _find(closing: bytes, carry: bytes, piece: bytes) -> int | None:
    """Find the closing tag in `carry + piece`; it may begin in one and end in the other."""
    overlap = carry[-len(closing) + 1 :]
    at = (overlap + piece[: len(closing)]).find(closing)
    if at >= 0:
        return len(carry) - len(overlap) + at
    at = piece.rfind(closing)
    return len(carry) + at if at >= 0 else None


def _padded(first: bytes, second: bytes, size: int) -> Iterator[bytes]:
    if first or size:
        yield b"".join((first, memoryview(second)[:size], PADDING))


def _rest(source: Iterator[bytes], limits: ReadLimits) -> bytes:
    pieces, size = [], 0
    for piece in source:
        size += len(piece)
        if size > limits.document_bytes_max:
            limit = limits.document_bytes_max // MIB
            raise TooLarge(f"more than {limit} MiB follow the cells (document_bytes_max)")
        pieces.append(piece)
    return b"".join(pieces)


def find_tags(buffer: ByteArray) -> tuple[IntArray, IntArray]:
    """Find where each tag begins and ends."""
    angles = np.flatnonzero(
        (buffer & 0xFD) == ord("<")
    )  # < and > differ in the bit that is masked out
    marks = buffer[angles]
    if not len(angles) % 2 and (marks[0::2] == ord("<")).all() and (marks[1::2] == ord(">")).all():
        return angles[0::2], angles[1::2]
    starts = np.flatnonzero(marks == ord("<"))  # a text may hold an unescaped >
    if not len(starts) or starts[-1] + 1 >= len(marks) or (marks[starts + 1] != ord(">")).any():
        raise FastPathUnsupported
    return angles[starts], angles[starts + 1]
