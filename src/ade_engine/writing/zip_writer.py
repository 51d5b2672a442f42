"""Write a zip archive from streamed parts; the same parts give the same bytes.

Neither a part nor the archive may reach 4 GiB, so that the original zip format (without zip64)
suffices, which every program reads. Compression runs in a thread while the next rows are prepared.
"""

from __future__ import annotations

import struct
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
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
_CRC_AT = 14


class OutputTooLarge(EngineError):
    """The output workbook would be too large for its format."""

    code = "output_too_large"
    advice = "Split the input, or keep fewer columns."


@dataclass(slots=True)
class _Part:
    name: bytes
    offset: int
    size: int = 0
    packed_size: int = 0
    crc: int = 0


class ZipWriter:
    """Write parts one after the other, each in pieces."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._parts: list[_Part] = []
        self._packer = ThreadPoolExecutor(1, "pack")
        self._packing: Future[None] | None = None
        self._stream = isal_zlib.compressobj(PACK_LEVEL, isal_zlib.DEFLATED, -zlib.MAX_WBITS)

    def begin(self, name: str) -> None:
        """Begin a part."""
        part = _Part(name.encode(), self._file.tell())
        self._parts.append(part)
        self._stream = isal_zlib.compressobj(PACK_LEVEL, isal_zlib.DEFLATED, -zlib.MAX_WBITS)
        self._file.write(self._header(part) + part.name)

    @property
    def part_bytes(self) -> int:
        """Return the uncompressed size of the open part."""
        return self._parts[-1].size

    def write(self, data: bytes) -> None:
        """Add to the open part, after the previous piece is compressed."""
        self._wait()
        self._parts[-1].size += len(data)
        self._packing = self._packer.submit(self._pack, data)

    def end(self) -> None:
        """End the open part."""
        self._wait()
        part = self._parts[-1]
        self._emit(part, self._stream.flush())
        end = self._file.tell()
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

    def _pack(self, data: bytes) -> None:
        part = self._parts[-1]
        part.crc = isal_zlib.crc32(data, part.crc)
        self._emit(part, self._stream.compress(data))

    def _emit(self, part: _Part, packed: bytes) -> None:
        part.packed_size += len(packed)
        if self._file.tell() + len(packed) > ARCHIVE_BYTES_MAX:
            raise OutputTooLarge("the workbook would be larger than 4 GiB")
        self._file.write(packed)
