"""Extract a stream from an OLE compound file, the container of old Office files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

END_OF_CHAIN = 0xFFFFFFFA  # this and all larger numbers are not sectors
HEADER_BYTES = 512
ENTRY_BYTES = 128

_Table = npt.NDArray[np.uint32]


class OleError(ValueError):
    """The compound file is damaged."""


@dataclass(frozen=True)
class OleStream:
    """A stream, and where its pieces of equal size are in the file."""

    content: bytes
    places: list[int]
    piece_bytes: int

    def overwrite(self, file: bytearray, at: int, data: bytes) -> None:
        """Overwrite bytes of the stream in a copy of the file."""
        for index, byte in enumerate(data, at):
            piece, offset = divmod(index, self.piece_bytes)
            file[self.places[piece] + offset] = byte


def read_stream(content: bytes, *names: str) -> OleStream:
    """Return the stream with the first of these names that the file has, ignoring case."""
    sector_bytes = 1 << int.from_bytes(content[30:32], "little")
    if not 128 <= sector_bytes <= 65_536 or len(content) < HEADER_BYTES:
        raise OleError
    table = _table(content, sector_bytes)
    directory = _joined(content, _chain(table, _word(content, 48), sector_bytes), sector_bytes)
    entries = [directory[at : at + ENTRY_BYTES] for at in range(0, len(directory), ENTRY_BYTES)]
    by_name: dict[str, bytes] = {}
    for entry in entries:
        size = int.from_bytes(entry[64:66], "little")
        name = entry[: max(size - 2, 0)].decode("utf-16-le", "replace").upper()
        by_name.setdefault(name, entry)
    for name in names:  # a file may hold the same workbook in the formats of two versions
        if name.upper() in by_name:
            return _stream(content, table, entries, by_name[name.upper()], sector_bytes)
    raise OleError


def _stream(
    content: bytes, table: _Table, entries: list[bytes], entry: bytes, sector_bytes: int
) -> OleStream:
    start, size = _word(entry, 116), _word(entry, 120)
    if size >= _word(content, 56):
        places = _chain(table, start, sector_bytes)
        return OleStream(_joined(content, places, sector_bytes)[:size], places, sector_bytes)
    mini_bytes = 1 << int.from_bytes(content[32:34], "little")
    mini = _joined(content, _chain(table, _word(content, 60), sector_bytes), sector_bytes)
    mini_table = np.frombuffer(mini[: len(mini) // 4 * 4], "<u4")
    small = _chain(table, _word(entries[0], 116), sector_bytes)
    places = []
    for at in _chain(mini_table, start, mini_bytes, header_bytes=0):
        sector, offset = divmod(at, sector_bytes)
        if sector >= len(small):
            raise OleError
        places.append(small[sector] + offset)
    return OleStream(_joined(content, places, mini_bytes)[:size], places, mini_bytes)


def _table(content: bytes, sector_bytes: int) -> _Table:
    """Read the sector allocation table: which sector follows which."""
    sectors = [_word(content, at) for at in range(76, HEADER_BYTES, 4)]
    following, seen = _word(content, 68), 0
    while following < END_OF_CHAIN:
        start = (following + 1) * sector_bytes
        part = content[start : start + sector_bytes]
        seen += sector_bytes
        if len(part) < sector_bytes or seen > len(content):
            raise OleError
        *more, following = np.frombuffer(part, "<u4").tolist()
        sectors += more
    parts: list[bytes] = []
    for sector in sectors:
        if sector < END_OF_CHAIN:
            start = (sector + 1) * sector_bytes
            parts.append(content[start : start + sector_bytes])
    joined = b"".join(parts)
    return np.frombuffer(joined[: len(joined) // 4 * 4], "<u4")


def _chain(
    table: _Table, sector: int, sector_bytes: int, header_bytes: int | None = None
) -> list[int]:
    """Return where each sector of a chain begins; the header takes the place of one sector."""
    first = sector_bytes if header_bytes is None else header_bytes
    places: list[int] = []
    for _ in range(len(table) + 1):
        if sector >= END_OF_CHAIN:
            return places
        if sector >= len(table):
            raise OleError
        places.append(sector * sector_bytes + first)
        sector = int(table[sector])
    raise OleError  # the chain has a cycle


def _joined(content: bytes, places: list[int], piece_bytes: int) -> bytes:
    return b"".join(content[at : at + piece_bytes] for at in places)


def _word(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "little")
