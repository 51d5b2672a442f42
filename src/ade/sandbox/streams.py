"""Read what a child writes, without ever blocking it or using unbounded memory."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from ade.domain.output import cut_note

CHUNK_BYTES = 64 * 1024
DRAIN_READS_MAX = 32  # twice what a pipe can hold


class PipeReader:
    """Read a pipe to its end and pass on each piece; `ended` is set at the end."""

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
        except ConnectionResetError:
            piece = b""
        if piece:
            self._take(piece)
        else:
            self.close()

    def drain(self) -> None:
        """Read what is available now, but not for ever what is written meanwhile."""
        for _ in range(DRAIN_READS_MAX):
            if self.ended.is_set():
                return
            try:
                piece = os.read(self._descriptor, CHUNK_BYTES)
            except (BlockingIOError, ConnectionResetError):
                return
            if not piece:
                self.close()
                return
            self._take(piece)

    def close(self) -> None:
        """Stop reading; calling it again does nothing."""
        if not self.ended.is_set():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self.ended.set()


class BoundedOutput:
    """Keep the beginning and the end of a stream, and count the bytes dropped between them."""

    def __init__(self, bytes_max: int) -> None:
        self._head_max = bytes_max // 2
        self._tail_max = bytes_max - self._head_max
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.taken_bytes = 0

    @property
    def dropped_bytes(self) -> int:
        """Count the bytes that were not kept."""
        return max(0, self.taken_bytes - self._head_max - self._tail_max)

    def take(self, piece: bytes) -> None:
        """Keep what still fits into the beginning, and the newest of the rest."""
        self.taken_bytes += len(piece)
        room = self._head_max - len(self._head)
        self._head += piece[:room]
        rest = piece[room:] if room > 0 else piece
        if rest:
            self._tail.append(rest[-self._tail_max :] if self._tail_max else b"")
            self._tail_bytes += len(self._tail[-1])
            while self._tail_bytes - len(self._tail[0]) >= self._tail_max > 0:
                self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what was kept as text, with a note where bytes were dropped."""
        tail = b"".join(self._tail)[-self._tail_max :] if self._tail_max else b""
        if not self.dropped_bytes:
            return (bytes(self._head) + tail).decode("utf-8", errors="replace")
        head = self._head.decode("utf-8", errors="replace")
        return head + cut_note(self.dropped_bytes) + tail.decode("utf-8", errors="replace")


class LineSplitter:
    """Split a stream into lines of bounded length, and pass on each complete line."""

    def __init__(self, line_bytes_max: int, take: Callable[[bytes], None]) -> None:
        self._line_bytes_max = line_bytes_max
        self._take = take
        self._begun = bytearray()
        self.overflowed = False

    def take(self, piece: bytes) -> None:
        """Add a piece; after a line that is too long everything is ignored."""
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
