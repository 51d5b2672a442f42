"""What an attempt wrote and is not stored yet, within the limit of its log.

The log keeps the first half of what its limit allows as it comes, and of the rest the newest half.
What is dropped between them is dropped here if it was not stored yet; otherwise the store is told
which part of the attempt's output it need not keep. So a job that prints without end costs no more
rows than its log may have, and one row of a log is never changed.

Bytes become text here: a character that was read in two parts is kept back until it is whole, and
bytes that are no UTF-8 become U+FFFD. Places count bytes of that text.
"""

import codecs
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ade.domain.output import BATCH_BYTES_MAX, BATCH_PIECES_MAX, Piece, PieceBatch, batch_of

# How many pieces may wait to be stored: a job can alternate between its streams with each byte.
PENDING_PIECES_MAX = 4 * BATCH_PIECES_MAX


@dataclass(slots=True)
class _PendingPiece:
    stream: str
    starts: int
    data: bytearray = field(default_factory=bytearray)

    @property
    def ends(self) -> int:
        return self.starts + len(self.data)

    def as_piece(self) -> Piece:
        return Piece(self.stream, self.starts, self.data.decode())


class OutputBuffer:
    """Hold what one attempt wrote until it is stored."""

    def __init__(self, bytes_max: int) -> None:
        self._head_max = bytes_max // 2
        self._tail_max = bytes_max - self._head_max
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._written_bytes = 0
        self._head_ends: int | None = None  # None while the first half is not full
        self._head: list[_PendingPiece] = []
        self._tail: deque[_PendingPiece] = deque()
        self._tail_bytes = 0
        self._unstored: list[PieceBatch] = []
        self._stored_tail: deque[PieceBatch] = deque()
        self._dropped_ends: int | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether all of it is stored."""
        return not (self._head or self._tail or self._unstored)

    @property
    def is_due(self) -> bool:
        """Tell whether a whole batch of the first half waits; the newest half may be dropped."""
        return bool(self._head) and (
            self._head[-1].ends - self._head[0].starts >= BATCH_BYTES_MAX
            or len(self._head) >= BATCH_PIECES_MAX
        )

    def take(self, stream: str, data: bytes) -> None:
        """Take what a stream wrote."""
        self._add(stream, self._whole_characters(stream, data))

    def end(self) -> None:
        """Take what the streams left of characters that will not become whole."""
        for stream, decoder in self._decoders.items():
            self._add(stream, decoder.decode(b"", final=True).encode())

    def _whole_characters(self, stream: str, data: bytes) -> bytes:
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._decoders[stream] = decoder
        elif data.isascii() and not decoder.getstate()[0]:
            return data
        return decoder.decode(data).encode()

    def _add(self, stream: str, data: bytes) -> None:
        if self._head_ends is None and data:
            is_full = len(self._head) >= PENDING_PIECES_MAX
            cut = 0 if is_full else _boundary(data, self._head_max - self._written_bytes)
            self._append(self._head, stream, data[:cut])
            data = data[cut:]
            if data:
                self._head_ends = self._written_bytes
                self._tail_max += self._head_max - self._head_ends  # the rest of it
        if data:
            # What does not fit into the newest half is counted and dropped at once.
            skipped = _boundary_after(data, len(data) - self._tail_max)
            self._written_bytes += skipped
            data = data[skipped:]
            self._tail_bytes += len(data)
            self._append(self._tail, stream, data)
            self._trim()

    def _append(
        self, pending: "list[_PendingPiece] | deque[_PendingPiece]", stream: str, data: bytes
    ) -> None:
        """Append to the last piece if it goes on there, in pieces that fit into a batch."""
        while data:
            last = pending[-1] if pending else None
            goes_on = (
                last is not None and last.stream == stream and last.ends == self._written_bytes
            )
            if last is None or not goes_on or len(last.data) >= BATCH_BYTES_MAX - 3:
                last = _PendingPiece(stream, self._written_bytes)
                pending.append(last)
            cut = _boundary(data, BATCH_BYTES_MAX - len(last.data))
            last.data += data[:cut]
            self._written_bytes += cut
            data = data[cut:]

    def _trim(self) -> None:
        """Drop the oldest of the newest half that is over its limit."""
        while len(self._tail) > PENDING_PIECES_MAX:
            self._tail_bytes -= len(self._tail.popleft().data)
        while (over := self._tail_bytes - self._tail_max) > 0:
            oldest = self._tail[0]
            cut = _boundary_after(oldest.data, over)
            self._tail_bytes -= cut
            del oldest.data[:cut]
            oldest.starts += cut
            if not oldest.data:
                self._tail.popleft()

    def unstored(self) -> tuple[tuple[PieceBatch, ...], tuple[int, int] | None]:
        """Return the batches to store, and between which places stored ones need not be kept.

        The same batches are returned again until `stored` was called for them.
        """
        self._unstored += _batches(self._head)
        self._unstored += _batches(self._tail)
        self._head.clear()
        self._tail.clear()
        self._tail_bytes = 0
        if self._head_ends is None:
            return tuple(self._unstored), None
        self._drop_before_newest(self._head_ends)
        dropped = None if self._dropped_ends is None else (self._head_ends, self._dropped_ends)
        return tuple(self._unstored), dropped

    def _drop_before_newest(self, head_ends: int) -> None:
        """Forget the batches that are older than the newest half."""
        kept_bytes = 0
        tail = [batch for batch in self._unstored if batch.starts >= head_ends]
        for batch in (*reversed(tail), *reversed(self._stored_tail)):
            if kept_bytes >= self._tail_max:
                ends = self._dropped_ends = batch.ends
                break
            kept_bytes += batch.ends - batch.starts
        else:
            return
        self._unstored = [
            one for one in self._unstored if one.starts < head_ends or one.ends > ends
        ]
        while self._stored_tail and self._stored_tail[0].ends <= ends:
            self._stored_tail.popleft()

    def stored(self, batches: Iterable[PieceBatch]) -> None:
        """Forget batches that were stored, and what was dropped with them."""
        known = {batch.starts for batch in batches}
        stored = [batch for batch in self._unstored if batch.starts in known]
        self._unstored = [batch for batch in self._unstored if batch.starts not in known]
        self._dropped_ends = None
        if self._head_ends is not None:
            self._stored_tail += [
                batch._replace(pieces="") for batch in stored if batch.starts >= self._head_ends
            ]


def _batches(pending: Iterable[_PendingPiece]) -> Iterator[PieceBatch]:
    """Put pieces into batches of limited size."""
    pieces: list[Piece] = []
    size_bytes = 0
    for one in pending:
        if pieces and (
            size_bytes + len(one.data) > BATCH_BYTES_MAX or len(pieces) == BATCH_PIECES_MAX
        ):
            yield batch_of(pieces)
            pieces, size_bytes = [], 0
        pieces.append(one.as_piece())
        size_bytes += len(one.data)
    if pieces:
        yield batch_of(pieces)


def _boundary(data: bytes | bytearray, limit: int) -> int:
    """Return the last place between two characters that is not after the limit."""
    if limit >= len(data):
        return len(data)
    place = max(limit, 0)
    while place > 0 and data[place] & 0xC0 == 0x80:
        place -= 1
    return place


def _boundary_after(data: bytes | bytearray, limit: int) -> int:
    """Return the first place between two characters that is not before the limit."""
    place = max(limit, 0)
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return min(place, len(data))
