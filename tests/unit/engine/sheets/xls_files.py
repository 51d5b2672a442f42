"""Write small .xls workbooks (BIFF8 in a compound file), record by record."""

import struct
from pathlib import Path

SECTOR = 512
END, FREE, TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
STREAM_BYTES_MIN = 4096  # smaller streams would have to go to the mini stream

BOF, EOF, BOUNDSHEET, CODEPAGE = 0x809, 0x0A, 0x85, 0x42
NUMBER, SST, LABEL_SST = 0x203, 0xFC, 0xFD


def record(kind: int, data: bytes = b"") -> bytes:
    """Make one record."""
    return struct.pack("<HH", kind, len(data)) + data


def bof(kind: int, version: int = 0x0600) -> bytes:
    """Begin a substream: 5 is the workbook, 0x10 a sheet, 0x20 a chart."""
    return record(BOF, struct.pack("<HHHHII", version, kind, 0, 0, 0, 0))


def number(row: int, column: int, value: float) -> bytes:
    """Make a cell with a number; row and column are 0-based."""
    return record(NUMBER, struct.pack("<HHHd", row, column, 0, value))


def shared_text(row: int, column: int, index: int) -> bytes:
    """Make a cell with a shared text."""
    return record(LABEL_SST, struct.pack("<HHHI", row, column, 0, index))


def chart(*cells: bytes) -> bytes:
    """Make an embedded chart that caches cells."""
    return bof(0x20) + b"".join(cells) + record(EOF)


def workbook(
    *sheets: tuple[str, int, bytes], texts: tuple[str, ...] = (), code_page: int = 1200
) -> bytes:
    """Make the stream of a workbook; a sheet is its name, its type and its records."""
    shared = struct.pack("<II", len(texts), len(texts)) + b"".join(
        struct.pack("<HB", len(text), 1) + text.encode("utf-16-le") for text in texts
    )
    head = bof(5) + record(CODEPAGE, struct.pack("<H", code_page))
    tail = record(SST, shared) + record(EOF)
    bounds_bytes = sum(4 + 8 + len(name) for name, _, _ in sheets)
    start = len(head) + bounds_bytes + len(tail)
    bounds, bodies = b"", b""
    for name, kind, body in sheets:
        place = struct.pack("<IBBBB", start + len(bodies), 0, kind, len(name), 0)
        bounds += record(BOUNDSHEET, place + name.encode("latin-1"))
        bodies += bof(0x20 if kind == 2 else 0x10) + body + record(EOF)
    return head + bounds + tail + bodies


def compound(path: Path, **streams: bytes) -> Path:
    """Write a compound file with streams."""
    table: list[int] = [TABLE]
    content = b""
    entries = [_entry("Root Entry", 5, END, 0)]
    for name, short in streams.items():
        stream = short.ljust(STREAM_BYTES_MIN, b"\0")
        sectors = -(-len(stream) // SECTOR)
        first = len(table)
        table += [*range(first + 1, first + sectors), END]
        content += stream.ljust(sectors * SECTOR, b"\0")
        entries.append(_entry(name, 2, first, len(stream)))
    directory = len(table)
    table.append(END)
    content += b"".join(entries).ljust(SECTOR, b"\0")
    assert len(table) <= SECTOR // 4, "one sector of the allocation table is enough for tests"
    return _write(path, table, content, directory)


def _write(path: Path, table: list[int], content: bytes, directory: int) -> Path:
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, directory, 0, 4096, END, 0, END, 0)
    head += struct.pack("<I", 0) + struct.pack("<I", FREE) * 108
    packed = struct.pack(f"<{len(table)}I", *table).ljust(SECTOR, b"\xff")
    path.write_bytes(head + packed + content)
    return path


def _entry(name: str, kind: int, start: int, size: int) -> bytes:
    text = name.encode("utf-16-le")
    data = text.ljust(64, b"\0") + struct.pack("<HBB", len(text) + 2, kind, 1)
    data += struct.pack("<III", FREE, FREE, 1 if kind == 5 else FREE) + bytes(36)
    return data + struct.pack("<III", start, size, 0)
