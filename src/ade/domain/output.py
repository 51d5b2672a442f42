"""What a job writes while it runs: pieces of text in one order over all its streams.

A *piece* is text that one stream of one attempt wrote. `starts` counts the bytes (as UTF-8) that
the attempt wrote to all streams before it, so a piece that does not begin where the one before it
ended shows how much was dropped between them.
"""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

# How many bytes of text one row of the log holds at most, and how many pieces.
BATCH_BYTES_MAX = 32 * 1024
BATCH_PIECES_MAX = 1000


class Stream(StrEnum):
    """Name where a piece comes from; `step` is what ADE does for the job, such as engine passes."""

    STDOUT = "stdout"
    STDERR = "stderr"
    STEP = "step"


class Piece(NamedTuple):
    """Hold text that a stream wrote."""

    stream: str
    starts: int
    text: str

    @property
    def ends(self) -> int:
        """Return how many bytes the attempt had written after it."""
        return self.starts + len(self.text.encode())


class PieceBatch(NamedTuple):
    """Hold consecutive pieces that are stored in one row."""

    starts: int
    ends: int
    piece_count: int
    pieces: str  # as JSON


def batch_of(pieces: Iterable[Piece]) -> PieceBatch:
    """Put pieces into a batch."""
    rows = list(pieces)
    text = json.dumps(rows, ensure_ascii=False)
    return PieceBatch(rows[0].starts, rows[-1].ends, len(rows), text)


def pieces_of(text: str) -> list[Piece]:
    """Read the pieces of a batch."""
    return [Piece(*row) for row in json.loads(text)]


def cut_note(dropped_bytes: int) -> str:
    """Say in a text that bytes are missing there."""
    return f"\n[output cut: {dropped_bytes} bytes were dropped here]\n"
