"""Stream the parts of a zip archive, enforcing the limits while they inflate.

The sizes that the archive declares are not trusted: bytes are counted as they are inflated.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from isal import isal_zlib

from ade_engine.errors import DamagedFile, EncryptedFile, TooLarge
from ade_engine.sheets.read_limits import MIB, ReadLimits

CHUNK_BYTES = MIB
READ_BYTES = 256 * 1024
INFLATE_ERRORS = tuple({zlib.error, getattr(isal_zlib, "error", zlib.error)})

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_END = struct.Struct("<4s8xII2x")
_END_SEARCH_BYTES = 65_536 + _END.size
_DIRECTORY_ENTRY_BYTES_MAX = 512  # a normal archive needs about a hundred for each part


class ZipReader:
    """The parts of a zip archive, by name; case and the kind of slash are ignored."""

    def __init__(self, file: BinaryIO, limits: ReadLimits) -> None:
        self._file = file
        self._limits = limits
        self._check_directory()
        try:
            entries = zipfile.ZipFile(file).infolist()
        except (
            zipfile.BadZipFile,
            ValueError,
            struct.error,
            OSError,
            NotImplementedError,
        ) as error:
            raise DamagedFile("the archive's directory cannot be read") from error
        if len(entries) > limits.parts_max:
            raise TooLarge(f"the archive has more than {limits.parts_max} parts (parts_max)")
        self._entries = {_plain(entry.filename): entry for entry in reversed(entries)}

    def _check_directory(self) -> None:
        """Reject a directory that is too large to read into memory."""
        size = self._file.seek(0, 2)
        self._file.seek(max(size - _END_SEARCH_BYTES, 0))
        tail = self._file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0 or at + _END.size > len(tail):
            raise DamagedFile("the archive ends before its directory")
        directory_bytes = _END.unpack_from(tail, at)[1]
        if directory_bytes > self._limits.parts_max * _DIRECTORY_ENTRY_BYTES_MAX:
            raise TooLarge(f"the archive has more than {self._limits.parts_max} parts (parts_max)")

    def __contains__(self, name: str) -> bool:
        return _plain(name) in self._entries

    def names(self) -> list[str]:
        """List the parts."""
        return list(self._entries)

    def read(self, name: str) -> bytes:
        """Return a whole part of at most `document_bytes_max` bytes."""
        pieces, size = [], 0
        for piece in self.stream(name):
            pieces.append(piece)
            size += len(piece)
            if size > self._limits.document_bytes_max:
                raise TooLarge(
                    f"a part is larger than {self._limits.document_bytes_max // MIB} MiB"
                    " (document_bytes_max)",
                    where=name,
                )
        return b"".join(pieces)

    def stream(self, name: str, bytes_max: int | None = None) -> Iterator[bytes]:
        """Yield a part in pieces of at most `CHUNK_BYTES`."""
        entry = self._entries[_plain(name)]
        if entry.flag_bits & 0x1:
            raise EncryptedFile("the archive needs a password", where=name)
        if entry.compress_type == zipfile.ZIP_STORED:
            pieces = self._stored(entry, name)
        elif entry.compress_type == zipfile.ZIP_DEFLATED:
            pieces = self._inflated(entry, name)
        else:
            raise DamagedFile("a part uses an unsupported compression method", where=name)
        size, crc = 0, 0
        size_max = min(bytes_max or self._limits.part_bytes_max, self._limits.part_bytes_max)
        for piece in pieces:
            size += len(piece)
            if size > size_max:
                raise TooLarge(f"a part inflates to more than {size_max // MIB} MiB", where=name)
            self._check_ratio(size, entry.compress_size, name)
            crc = isal_zlib.crc32(piece, crc)
            yield piece
        if entry.CRC and crc != entry.CRC:
            raise DamagedFile("the checksum of a part does not match", where=name)

    def _check_ratio(self, size: int, packed_size: int, name: str) -> None:
        limits = self._limits
        if size > limits.ratio_free_bytes and size > limits.ratio_max * packed_size:
            raise TooLarge(
                f"a part inflates to more than {limits.ratio_max} times its size (ratio_max)",
                where=name,
            )

    def _stored(self, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
        at, left = self._data_offset(entry, name), entry.compress_size
        while left:
            self._file.seek(at)
            piece = self._file.read(min(left, CHUNK_BYTES))
            if not piece:
                raise DamagedFile("the archive ends inside a part", where=name)
            at += len(piece)
            left -= len(piece)
            yield piece

    def _inflated(self, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
        at, left = self._data_offset(entry, name), entry.compress_size
        stream = isal_zlib.decompressobj(-zlib.MAX_WBITS)
        packed = b""
        while not stream.eof:
            if not packed and left:
                self._file.seek(at)  # another part may have been read in between
                packed = self._file.read(min(left, READ_BYTES))
                at += len(packed)
                left -= len(packed)
            try:
                piece = stream.decompress(packed, CHUNK_BYTES)
            except INFLATE_ERRORS as error:
                raise DamagedFile("a part cannot be inflated", where=name) from error
            if not piece and not packed and not stream.eof:
                raise DamagedFile("the archive ends inside a part", where=name)
            packed = stream.unconsumed_tail
            if piece:
                yield piece

    def _data_offset(self, entry: zipfile.ZipInfo, name: str) -> int:
        """Find where a part's bytes begin: its local header has its own lengths."""
        self._file.seek(entry.header_offset)
        header = self._file.read(30)
        if len(header) < 30 or header[:4] != b"PK\3\4":
            raise DamagedFile("a part is not where the directory says", where=name)
        _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
        return entry.header_offset + 30 + int(name_bytes) + int(extra_bytes)


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()
