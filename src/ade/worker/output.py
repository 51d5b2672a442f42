"""Take what a child writes, without ever blocking it or growing without bound."""

import asyncio
import os
from collections.abc import Callable

CHUNK_BYTES = 64 * 1024


class Intake:
    """Read a pipe to its end, handing each piece on; `ended` is set at the end."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return
        if piece:
            self._take(piece)
        else:
            self.close()

    def close(self) -> None:
        """Stop reading; harmless the second time."""
        if not self.ended.is_set():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set()


class Bounded:
    """Keep the first bytes of a stream, and count the rest."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self.dropped_bytes = 0

    def take(self, piece: bytes) -> None:
        """Keep what still fits."""
        room = self._bytes_max - len(self._kept)
        self._kept += piece[:room]
        self.dropped_bytes += max(0, len(piece) - room)

    def text(self) -> str:
        """Return what was kept as text, saying so if something was cut."""
        text = self._kept.decode("utf-8", errors="replace")
        if self.dropped_bytes:
            text += f"\n[output cut: {self.dropped_bytes} more bytes were dropped]\n"
        return text


class Lines:
    """Cut a stream into lines of bounded length, handing each on as it ends."""

    def __init__(self, line_bytes_max: int, take: Callable[[bytes], None]) -> None:
        self._line_bytes_max = line_bytes_max
        self._take = take
        self._begun = bytearray()
        self.overflowed = False

    def take(self, piece: bytes) -> None:
        """Add a piece; a line that grows too long ends the intake."""
        if self.overflowed:
            return
        self._begun += piece
        while 0 <= (end := self._begun.find(b"\n")) <= self._line_bytes_max:
            line = bytes(self._begun[:end])
            del self._begun[: end + 1]
            self._take(line)
        if len(self._begun) > self._line_bytes_max:  # ended or not
            self.overflowed = True
            self._begun.clear()
