"""Detect the encoding of a text file from all of its bytes."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

from ade_engine.errors import UnknownFormat
from ade_engine.sheets.read_limits import MIB

SAMPLE_BYTES = 65_536
CONTROL_SHARE_MAX = 0.1

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes({*range(32), 127} - {*b"\t\n\r\f\v\0\x1a\x1b"})
_UNUSED_IN_1252 = b"\x81\x8d\x8f\x90\x9d"


def detect_encoding(file: BinaryIO) -> str:
    """Return the name of the encoding; raise `UnknownFormat` if the file is not text.

    UTF-8 is chosen only if the whole file decodes. Every other single-byte encoding is read as the
    Western European one, which may produce wrong letters but no error.
    """
    file.seek(0)
    sample = file.read(SAMPLE_BYTES)
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        wide = _wide(sample)
        if wide is not None:
            return wide
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > CONTROL_SHARE_MAX * len(sample) or sample.count(0) > len(sample) // 2:
        raise UnknownFormat("this is neither text nor a workbook")
    return _narrow(file)


def _wide(sample: bytes) -> str | None:
    """Recognise UTF-16 without a byte order mark: every other byte of Western text is zero."""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = max(len(sample) // 2, 1)
    for name, often, rarely in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if often > half // 2 and rarely < half // 20 + 1:
            try:
                sample[: len(sample) // 2 * 2].decode(name)
            except UnicodeDecodeError as error:
                if error.start < len(sample) - 4:  # the end of the sample may cut a surrogate pair
                    continue
            return name
    return None


def _narrow(file: BinaryIO) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    unused = False
    utf8 = True
    file.seek(0)
    while piece := file.read(MIB):
        if utf8:
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                utf8 = False
                file.seek(0)
                continue
        else:
            unused = unused or len(piece.translate(None, _UNUSED_IN_1252)) < len(piece)
    if utf8:
        try:
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            return "cp1252"
        return "utf-8"
    return "latin-1" if unused else "cp1252"


def utf8_pieces(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """Yield the file as UTF-8 without a byte order mark, in pieces of about a megabyte."""
    file.seek(0)
    if encoding == "utf-8":
        while piece := file.read(MIB):
            yield piece
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while piece := file.read(MIB):
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", True).encode()
