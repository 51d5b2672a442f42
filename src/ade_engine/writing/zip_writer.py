"""Write a zip archive from streamed parts; the same parts give the same bytes.

A part is written in pieces that are compressed independently of each other. The first bytes of a
part can be reserved and filled in at its end, and pieces that are already written can be changed:
what a sheet says about its columns stands before its rows and is known after them.

Neither a part nor the archive may reach 4 GiB, so that the original zip format (without zip64)
suffices, which every program reads. Compression runs in a thread while the next rows are prepared.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from ade_engine.errors import EngineError

ARCHIVE_BYTES_MAX = 2**32 - 2**26
PACK_LEVEL = 1  # three times as fast as the next level, and files are a tenth larger

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_VERSION = 20
_UTF8_NAMES = 0x800
_DEFLATED = 8
_DATE_1980 = 0x21  # the earliest date of zip; the real time would change the bytes
_STORED_BYTES_MAX = 65_535  # of one uncompressed block of deflate
_LAST_BLOCK = b"\x03\x00"  # an empty block that ends a deflate stream


class OutputTooLarge(EngineError):
    """The output workbook would be too large for its format."""

    code = "output_too_large"
    advice = "Split the input, or keep fewer columns."


@dataclass(slots=True)
class _Piece:
    size: int = 0
    packed_size: int = 0
    crc: int = 0


@dataclass(slots=True)
class _Part:
    name: bytes
    offset: int
    pieces: list[_Piece] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    @property
    def packed_size(self) -> int:
        return sum(piece.packed_size for piece in self.pieces) + len(_LAST_BLOCK)

    @property
    def crc(self) -> int:
        crc = 0
        for piece in self.pieces:
            crc = isal_zlib.crc32_combine(crc, piece.crc, piece.size)
        return crc

    def start_of(self, number: int) -> int:
        """Return where a piece begins in the file."""
        before = sum(piece.packed_size for piece in self.pieces[:number])
        return self.offset + _LOCAL.size + len(self.name) + before


class ZipWriter:
    """Write parts one after the other, each in pieces; the file must be open for reading, too."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._parts: list[_Part] = []
        self._packer = ThreadPoolExecutor(1, "pack")
        self._packing: Future[None] | None = None

    def begin(self, name: str, reserved_bytes: int = 0) -> None:
        """Begin a part; its first bytes can be reserved for what `end` writes there."""
        part = _Part(name.encode(), self._file.tell())
        self._parts.append(part)
        self._file.write(self._header(part) + part.name)
        if reserved_bytes:
            self._store(part, bytes(reserved_bytes))

    @property
    def part_bytes(self) -> int:
        """Return the uncompressed size of the open part."""
        return self._parts[-1].size

    def write(self, data: bytes) -> int:
        """Add a piece to the open part, after the one before is compressed; return its number."""
        self._wait()
        part, piece = self._parts[-1], _Piece(len(data))
        part.pieces.append(piece)
        self._packing = self._packer.submit(self._pack, piece, data)
        return len(part.pieces) - 1

    def rewrite(self, changes: Mapping[int, Callable[[bytes], bytes]]) -> None:
        """Change pieces of the open part that are already written, by their numbers."""
        self._wait()
        part, first = self._parts[-1], min(changes)
        start = part.start_of(first)
        self._file.seek(start)
        with tempfile.TemporaryFile(dir=Path(self._file.name).parent) as before:
            shutil.copyfileobj(self._file, before)
            before.seek(0)
            self._file.seek(start)
            self._file.truncate()
            for number, piece in enumerate(part.pieces[first:], first):
                packed = before.read(piece.packed_size)
                if number in changes:
                    inflated = isal_zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
                    data = changes[number](inflated)
                    piece.size = len(data)
                    self._pack(piece, data)
                else:
                    self._emit(packed)

    def end(self, head: bytes = b"") -> None:
        """End the open part; `head` fills the bytes that were reserved, with spaces after it."""
        self._wait()
        part = self._parts[-1]
        self._emit(_LAST_BLOCK)
        end = self._file.tell()
        if head:
            reserved = part.pieces[0].size
            if len(head) > reserved:
                raise ValueError(f"{len(head)} bytes do not fit in the {reserved} reserved ones")
            self._file.seek(part.start_of(0))
            self._store(part, head.ljust(reserved))
        self._file.seek(part.offset)
        self._file.write(self._header(part))
        self._file.seek(end)

    def close(self) -> None:
        """Write the central directory."""
        start = self._file.tell()
        for part in self._parts:
            fields = (b"PK\1\2", _VERSION, _VERSION, _UTF8_NAMES, _DEFLATED, 0, _DATE_1980)
            sizes = (part.crc, part.packed_size, part.size)
            rest = (len(part.name), 0, 0, 0, 0, 0, part.offset)
            self._file.write(_CENTRAL.pack(*fields, *sizes, *rest) + part.name)
        count, size = len(self._parts), self._file.tell() - start
        self._file.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))
        self.abandon()

    def abandon(self) -> None:
        """Stop compressing, and leave the file as it is."""
        self._packer.shutdown(wait=True, cancel_futures=True)

    def _header(self, part: _Part) -> bytes:
        fields = (b"PK\3\4", _VERSION, _UTF8_NAMES, _DEFLATED, 0, _DATE_1980)
        return _LOCAL.pack(*fields, part.crc, part.packed_size, part.size, len(part.name), 0)

    def _wait(self) -> None:
        if self._packing is not None:
            self._packing.result()
            self._packing = None

    def _pack(self, piece: _Piece, data: bytes) -> None:
        # A stream of its own for each piece, so that a piece can be read and replaced by itself.
        stream = isal_zlib.compressobj(PACK_LEVEL, isal_zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = stream.compress(data) + stream.flush(isal_zlib.Z_SYNC_FLUSH)
        piece.crc, piece.packed_size = isal_zlib.crc32(data), len(packed)
        self._emit(packed)

    def _store(self, part: _Part, data: bytes) -> None:
        """Write the first piece of a part without compression, which gives it a known length."""
        blocks = b"".join(
            b"\0" + struct.pack("<HH", len(cut), len(cut) ^ 0xFFFF) + cut
            for start in range(0, len(data), _STORED_BYTES_MAX)
            if (cut := data[start : start + _STORED_BYTES_MAX])
        )
        part.pieces[:1] = [_Piece(len(data), len(blocks), isal_zlib.crc32(data))]
        self._emit(blocks)

    def _emit(self, packed: bytes) -> None:
        if self._file.tell() + len(packed) > ARCHIVE_BYTES_MAX:
            raise OutputTooLarge("the workbook would be larger than 4 GiB")
        self._file.write(packed)
