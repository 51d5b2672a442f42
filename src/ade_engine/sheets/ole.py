"""Extract a stream from an OLE compound file, the container of old Office files."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

END_OF_CHAIN = 0xFFFFFFFA  # this and all larger numbers are not sectors
HEADER_BYTES = 512
ENTRY_BYTES = 128

_Table = npt.NDArray[np.uint32]


class OleError(ValueError):
    """The compound file is damaged."""


def read_stream(content: bytes, *names: str) -> bytes:
    """Return the first stream that has one of these names, ignoring case."""
    sector_bytes = 1 << int.from_bytes(content[30:32], "little")
    if not 128 <= sector_bytes <= 65_536 or len(content) < HEADER_BYTES:
        raise OleError
    table = _table(content, sector_bytes)
    directory = _chain(content, table, _word(content, 48), sector_bytes, sector_bytes)
    entries = [directory[at : at + ENTRY_BYTES] for at in range(0, len(directory), ENTRY_BYTES)]
    wanted = {name.upper() for name in names}
    for entry in entries:
        size = int.from_bytes(entry[64:66], "little")
        if entry[: max(size - 2, 0)].decode("utf-16-le", "replace").upper() in wanted:
            return _stream(content, table, entries, entry, sector_bytes)
    raise OleError


def _stream(
    content: bytes, table: _Table, entries: list[bytes], entry: bytes, sector_bytes: int
) -> bytes:
    start, size = _word(entry, 116), _word(entry, 120)
    if size >= _word(content, 56):
        return _chain(content, table, start, sector_bytes, sector_bytes)[:size]
    mini_bytes = 1 << int.from_bytes(content[32:34], "little")
    mini = _chain(content, table, _word(content, 60), sector_bytes, sector_bytes)
    small = _chain(content, table, _word(entries[0], 116), sector_bytes, sector_bytes)
    mini_table = np.frombuffer(mini[: len(mini) // 4 * 4], "<u4")
    return _chain(small, mini_table, start, mini_bytes, 0)[:size]


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


def _chain(content: bytes, table: _Table, sector: int, sector_bytes: int, offset: int) -> bytes:
    parts: list[bytes] = []
    for _ in range(len(table) + 1):
        if sector >= END_OF_CHAIN:
            return b"".join(parts)
        if sector >= len(table):
            raise OleError
        start = sector * sector_bytes + offset
        parts.append(content[start : start + sector_bytes])
        sector = int(table[sector])
    raise OleError  # the chain has a cycle


def _word(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "little")
