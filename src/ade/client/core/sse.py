"""Take a stream of server-sent events apart, however its bytes were cut."""

from collections.abc import Iterator
from dataclasses import dataclass

EVENT_BYTES_MAX = 16 * 1024 * 1024


class EventTooLarge(ValueError):
    """An event is larger than any that ADE sends."""


@dataclass(frozen=True)
class ServerSentEvent:
    """One event of a stream."""

    id: str
    event: str
    data: str


class SseParser:
    """Turn pieces of bytes into events; an event that is not complete yet is kept."""

    def __init__(self) -> None:
        self._held = b""
        self._id = ""
        self._event = ""
        self._data: list[str] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that are complete with this piece."""
        self._held += piece
        # A CR at the end may be half of a CRLF.
        ready, self._held = _complete_lines(self._held)
        if len(self._held) + self._data_bytes > EVENT_BYTES_MAX:
            raise EventTooLarge("an event has more than 16 MiB")
        for line in ready:
            yield from self._line(line.decode(errors="replace"))

    def _line(self, line: str) -> Iterator[ServerSentEvent]:
        if not line:
            if self._data:
                yield ServerSentEvent(self._id, self._event or "message", "\n".join(self._data))
            self._event, self._data, self._data_bytes = "", [], 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_bytes += len(value)
        elif name == "id":
            self._id = value
        elif name == "event":
            self._event = value


def _complete_lines(held: bytes) -> tuple[list[bytes], bytes]:
    """Split off the lines that have ended."""
    end = held.rfind(b"\n")
    cr = held.rfind(b"\r", 0, len(held) - 1)
    end = max(end, cr)
    if end < 0:
        return [], held
    done, rest = held[: end + 1], held[end + 1 :]
    lines = done.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return lines[:-1], rest
