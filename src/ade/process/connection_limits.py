"""Limit what a connection may cost before it is known who sends on it.

The parser accepts heads of any size, and uvicorn waits for ever for the rest of a request, so its
protocol is extended here. Every phase of a connection has a limit of size and of time:

    phase    what arrives                    beyond the limit
    -------  ------------------------------  -----------------------------------------------------
    head     the request line and headers    414 or 431; after `head_seconds` 408, or closed if
                                             not a byte was sent
    body     the body, then trailers         fewer than STALL_BYTES in `stall_seconds`: 408; after
                                             an early answer the rest may take `head_seconds`
    answer   nothing: the request is whole   cut off if the client takes none of the answer for
                                             `stall_seconds`
    idle     nothing: the answer was sent    closed after `idle_seconds`

No time counts against a client while the server does not read. A new connection above the limit of
its address, or of the process, gets 503 and is closed at once. IPv6 addresses count by /64, which
is what one client has. Proxies that are trusted, and this machine itself, count towards the limit
of the process only, and have some connections in reserve beyond it.

The rule about time: a phase notes when it began, by the clock of the event loop. One timer for all
connections looks at them every second, so requests set no timers, and a limit may be exceeded by
that second.
"""

import asyncio
import contextlib
import fcntl
import sys
import termios
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any

import httptools
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ade.domain.errors import Unavailable
from ade.http.client_address import Networks, client_network
from ade.http.middleware import TRACE_HEADER, new_trace_id
from ade.http.problems import problem_response
from ade.telemetry import metrics

HEAD_BYTES_MAX = 32 * 1024
HEADERS_MAX = 100
URL_BYTES_MAX = 8 * 1024
PIPELINED_MAX = 100
STALL_BYTES = 1024
LOOK_SECONDS = 1.0
# For so long the rest of a refused request is read and dropped: if it stayed unread, the kernel
# would reset the connection, and the client would not see why it was refused.
LINGER_SECONDS = 1.0
INVALID = HTTPException(400, "This is not an HTTP request that ADE can read.")
URL_TOO_LONG = HTTPException(414, f"A URL may have at most {URL_BYTES_MAX} bytes.")
HEAD_TOO_LARGE = HTTPException(
    431, f"Headers may have at most {HEAD_BYTES_MAX // 1024} KiB, and be at most {HEADERS_MAX}."
)
PIPELINED = Unavailable(f"At most {PIPELINED_MAX} requests may wait on one connection.")


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """Hold the limits of all connections together, and of each."""

    connections_max: int = 2000
    per_address_max: int = 500
    head_seconds: float = 20.0
    stall_seconds: float = 60.0
    idle_seconds: float = 20.0
    uncounted: Networks = field(default_factory=Networks)
    # More than `connections_max`, for uncounted addresses: health checks still get in.
    reserved: int = 16
    look_seconds: float = LOOK_SECONDS


class Phase(Enum):
    """Name what a connection waits for."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"
    REFUSED = "refused"


class Connections:
    """Count the connections of this process, and end those that take too long."""

    def __init__(self, rules: ConnectionRules) -> None:
        self.rules = rules
        self._open: set[LimitedProtocol] = set()
        self._per_address = Counter[str]()
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self, **parts: Any) -> "LimitedProtocol":
        """Make the protocol of one connection, where uvicorn expects its class."""
        return LimitedProtocol(self, **parts)

    def admit(self, connection: "LimitedProtocol") -> str | None:
        """Count a new connection, or return which limit it exceeds."""
        rules, address = self.rules, connection.counted_as
        reserved = rules.reserved if address is None else 0
        if len(self._open) >= rules.connections_max + reserved:
            return "connections"
        if address is not None:
            if self._per_address[address] >= rules.per_address_max:
                return "connections_of_address"
            self._per_address[address] += 1
        self._open.add(connection)
        if self._timer is None:
            self._look_later(connection.loop)
        return None

    def forget(self, connection: "LimitedProtocol") -> None:
        """Stop counting a connection; one that was refused was not counted."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        if (address := connection.counted_as) is not None:
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self.rules.look_seconds, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for connection in tuple(self._open):
            connection.end_if_overdue(now)
        if self._open:
            self._look_later(loop)


class LimitedProtocol(HttpToolsProtocol):
    """Serve one connection within the limits."""

    def __init__(self, connections: Connections, **parts: Any) -> None:
        super().__init__(**parts)
        self._connections = connections
        self._rules = connections.rules
        self.timeout_keep_alive = connections.rules.idle_seconds  # type: ignore[assignment]
        self.counted_as: str | None = None
        self._phase = Phase.IDLE
        self._since = self.loop.time()
        self._has_served = False
        self._heads = 0
        self._piece_bytes = 0
        self._head_bytes = 0
        self._body_bytes = 0  # since `_since`
        self._framing_bytes = 0  # of chunks and trailers, since the last byte of the body
        self._unsent_bytes, self._unsent_since = 0, 0.0
        self._refusal: Exception | None = None

    # --- the connection -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Serve a connection if there is room for it."""
        super().connection_made(transport)
        address = self.client[0] if self.client else None
        if address is not None and address not in self._rules.uncounted:
            self.counted_as = client_network(address)
        if (limit := self._connections.admit(self)) is not None:
            metrics.connection_refused(limit)
            self._phase = Phase.REFUSED
            whose = "this server" if limit == "connections" else "your address"
            self._write(Unavailable(f"Too many connections of {whose} are open; close some."))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting a connection."""
        self._connections.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, and refuse what is too large."""
        if self._phase is Phase.REFUSED:
            return
        self._unset_keepalive_if_required()
        is_of_one_head = self._phase in (Phase.IDLE, Phase.HEAD)
        heads, size = self._heads, len(data)
        self._piece_bytes = size
        self._framing_bytes += size
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # it is answered as if it did not ask for an upgrade
            return
        except httptools.HttpParserError:
            self._refuse("invalid", self._refusal or INVALID)
            return
        if self._phase is Phase.HEAD:
            if is_of_one_head and self._heads <= heads + 1:
                self._head_bytes += size
            self._refuse_if(self._head_excess())
        elif self._phase is Phase.BODY and self._framing_bytes > HEAD_BYTES_MAX:
            self._refuse("head", HEAD_TOO_LARGE)

    # --- callbacks of the parser ----------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self._heads += 1
        self._head_bytes = 0
        self._begin(Phase.HEAD)

    def on_headers_complete(self) -> None:
        """Begin a body, unless the head is too large; an exception stops the parser."""
        self._refusal = self._head_excess()
        may_be_large = self._head_bytes + self._piece_bytes > HEAD_BYTES_MAX
        if may_be_large and sum(len(n) + len(v) for n, v in self.headers) > HEAD_BYTES_MAX:
            self._refusal = self._refusal or HEAD_TOO_LARGE
        if len(self.pipeline) >= PIPELINED_MAX:
            self._refusal = PIPELINED
        if self._refusal is not None:
            raise self._refusal
        super().on_headers_complete()
        self._framing_bytes = 0
        self._begin(Phase.BODY)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body_bytes += len(body)
        self._framing_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the answer; trailers count as headers."""
        if len(self.headers) > HEADERS_MAX:
            self._refusal = HEAD_TOO_LARGE
            raise self._refusal
        self._has_served = True
        self._begin(Phase.IDLE if self.cycle.response_complete else Phase.ANSWER)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, for the rest of this one, or for the next answer."""
        is_over = self._phase is Phase.ANSWER and not self.pipeline
        self._begin(Phase.IDLE if is_over else self._phase)
        super().on_response_complete()

    def _begin(self, phase: Phase) -> None:
        self._phase = phase
        self._since = self.loop.time()
        self._body_bytes = 0

    def _head_excess(self) -> HTTPException | None:
        if len(self.url) > URL_BYTES_MAX:
            return URL_TOO_LONG
        if len(self.headers) > HEADERS_MAX or self._head_bytes > HEAD_BYTES_MAX:
            return HEAD_TOO_LARGE
        return None

    # --- time -----------------------------------------------------------------------------------

    def end_if_overdue(self, now: float) -> None:
        """End the connection if its phase has taken too long."""
        self._end_if_unread(now)
        if self.transport.is_closing() or self._phase is Phase.ANSWER:
            return
        if self._phase is Phase.REFUSED:
            self.transport.abort()
        elif self._is_served_late():
            self._since, self._body_bytes = now, 0
        elif now - self._since >= self._allowed_seconds():
            self._end_phase(now)

    def _is_served_late(self) -> bool:
        """Tell whether it is the server that does not read, so that the client cannot send."""
        cycle = self.cycle
        is_awaited = cycle is not None and cycle.waiting_for_100_continue
        return self.flow.read_paused or (self._phase is Phase.BODY and is_awaited)

    def _allowed_seconds(self) -> float:
        if self._phase is Phase.BODY and not self.cycle.response_complete:
            return self._rules.stall_seconds
        if self._phase is Phase.IDLE and self._has_served:
            return self._rules.idle_seconds
        return self._rules.head_seconds

    def _end_phase(self, now: float) -> None:
        cycle = self.cycle
        if self._phase is Phase.IDLE or (self._phase is Phase.BODY and cycle.response_complete):
            metrics.connection_refused("idle")
            self.transport.close()
        elif self._phase is Phase.HEAD:
            waited = f"The head of the request did not arrive in {self._rules.head_seconds:g} s."
            self._refuse("slow_head", HTTPException(408, waited))
        elif self._body_bytes < STALL_BYTES:
            waited = f"The body did not arrive: it stalled for {self._rules.stall_seconds:g} s."
            self._refuse("slow_body", HTTPException(408, waited))
        else:
            self._since, self._body_bytes = now, 0

    def _end_if_unread(self, now: float) -> None:
        """Cut off a client that takes none of what waits to be sent, also when it is closed."""
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            unsent += _in_kernel_bytes(self.transport)
        if unsent == 0 or unsent != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since = unsent, now
        elif now - self._unsent_since >= self._rules.stall_seconds:
            metrics.connection_refused("unread")
            self.transport.abort()

    # --- refusals -------------------------------------------------------------------------------

    def _refuse_if(self, refusal: HTTPException | None) -> None:
        if refusal is not None:
            self._refuse("head", refusal)

    def _refuse(self, reason: str, refusal: Exception) -> None:
        """Answer with a problem, and close; in the middle of another answer, only close."""
        metrics.connection_refused(reason)
        cycle, phase = self.cycle, self._phase
        self._phase = Phase.REFUSED
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started or phase is not Phase.BODY:
                self.transport.abort()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self._write(refusal)
        self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _write(self, error: Exception) -> None:
        trace_id = new_trace_id()
        answer = problem_response(error, trace_id)
        headers = (
            (b"content-type", answer.content_type.encode()),
            (b"content-length", b"%d" % len(answer.body)),
            (b"connection", b"close"),
            (TRACE_HEADER, trace_id.encode()),
            *answer.headers,
        )
        line = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n".encode()
        head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(line + head + b"\r\n" + answer.body)


def _in_kernel_bytes(transport: asyncio.Transport) -> int:
    """Return how much the kernel has that the client has not received.

    The kernel takes more only when a third of its buffer is free, which may be a mebibyte: of a
    client that reads slowly, nothing else shows for minutes that it reads.
    """
    held = bytearray(4)
    with contextlib.suppress(OSError, AttributeError, ValueError):  # it is closed meanwhile
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, held)
    return int.from_bytes(held, sys.byteorder)
