"""A TCP proxy in front of PostgreSQL whose network a test may break.

Every way in which a network fails is one call: connections that stay open and pass nothing
(half-open), all silent, slow, reset, an answer that is lost, another server at the same address.
It listens on the loopback address only, and each connection has one thread.
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy.engine import URL, make_url

CHUNK_BYTES = 64 * 1024
POLL_SECONDS = 0.05
CONNECT_SECONDS = 5.0
POSTGRES_PORT = 5432
# Closing a socket with this sends a reset instead of the ordinary end.
_RESET = struct.pack("ii", 1, 0)
Address = tuple[str, int] | str


@dataclass(eq=False)
class Link:
    """Hold one connection through the proxy; only its own thread touches the sockets."""

    client: socket.socket
    server: socket.socket
    silent: threading.Event = field(default_factory=threading.Event)
    broken: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        """Close both sides, by a reset if the connection is to break."""
        if self.broken.is_set():
            with contextlib.suppress(OSError):
                self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.client.close()
        self.server.close()
        self.ended.set()


class Proxy:
    """Pass bytes between clients and one server, until a test says otherwise."""

    def __init__(self, upstream: Address) -> None:
        self.upstream = upstream
        # How long each piece is held back, in both directions.
        self.delay_seconds = 0.0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._links: set[Link] = set()
        self._lock = threading.Lock()
        self._silent_for_new = False
        self._refuses = False
        self._lost_after: bytes | None = None
        self._closed = threading.Event()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def connections(self) -> int:
        """Count the open connections, silent ones among them."""
        with self._lock:
            return len(self._links)

    def silence_existing(self) -> None:
        """Pass no more bytes on the connections that exist; new ones work (half-open)."""
        with self._lock:
            for link in self._links:
                link.silent.set()

    def silence_all(self) -> None:
        """Accept connections and pass nothing, on those that exist and on new ones."""
        self._silent_for_new = True
        self.silence_existing()

    def refuse(self) -> None:
        """Close every connection, and each new one at once, as while a server restarts."""
        self._refuses = True
        self.reset()

    def restore(self) -> None:
        """Let new connections work, without delay; those that were silenced stay silent."""
        self._silent_for_new = self._refuses = False
        self.delay_seconds = 0.0

    def reset(self) -> None:
        """Break the connections that exist by a TCP reset."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.broken.set()
        for link in links:
            link.ended.wait(CONNECT_SECONDS)

    def lose_answer_after(self, request: bytes) -> None:
        """Pass on the next piece that contains these bytes, and reset instead of the answer."""
        self._lost_after = request

    def switch(self, upstream: Address) -> None:
        """Send new connections to another server and break the others: a failover by name."""
        self.upstream = upstream
        self.reset()

    def close(self) -> None:
        """Stop, and close everything."""
        self._closed.set()
        self._accepting.join(10)
        self._listening.close()
        self.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            if not select.select([self._listening], [], [], POLL_SECONDS)[0]:
                continue
            client, _ = self._listening.accept()
            if self._refuses:
                client.close()
                continue
            try:
                server = _connected(self.upstream)
            except OSError:
                client.close()
                continue
            link = Link(client, server)
            if self._silent_for_new:
                link.silent.set()
            with self._lock:
                self._links.add(link)
            threading.Thread(target=self._pass, args=(link,), daemon=True).start()

    def _pass(self, link: Link) -> None:
        """Pass bytes both ways until one side ends, or the link is to break."""
        try:
            while not (self._closed.is_set() or link.broken.is_set()):
                if link.silent.is_set():  # both sides stay open, and nothing is read
                    link.broken.wait(POLL_SECONDS)
                elif not self._pass_once(link):
                    return
        except OSError:
            pass  # one side was reset
        finally:
            link.close()
            with self._lock:
                self._links.discard(link)

    def _pass_once(self, link: Link) -> bool:
        """Pass what is there in both directions; False if one side has ended."""
        other = {link.client: link.server, link.server: link.client}
        for side in select.select(list(other), [], [], POLL_SECONDS)[0]:
            piece = side.recv(CHUNK_BYTES)
            if not piece:
                return False
            if self.delay_seconds:
                link.broken.wait(self.delay_seconds)
            if link.silent.is_set() or link.broken.is_set():
                return True  # meanwhile it became silent or broke: the piece is lost
            other[side].sendall(piece)
            lost = self._lost_after
            if lost is not None and side is link.client and lost in piece:
                self._lost_after = None
                select.select([link.server], [], [], CONNECT_SECONDS)  # it has answered
                link.broken.set()
        return True


def _connected(address: Address) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address, CONNECT_SECONDS)
    made = socket.socket(socket.AF_UNIX)
    made.connect(address)
    return made


def address_of(url: str) -> Address:
    """Return where the PostgreSQL server of a URL listens: host and port, or a socket's path."""
    parsed = make_url(url)
    host = parsed.query.get("host") or parsed.host or "127.0.0.1"
    assert isinstance(host, str)
    port = parsed.port or POSTGRES_PORT
    return str(Path(host) / f".s.PGSQL.{port}") if host.startswith("/") else (host, port)


def through(url: str, *proxies: Proxy, **query: str) -> str:
    """Return the URL of the same database behind a proxy, or behind several hosts."""
    parsed: URL = make_url(url).difference_update_query(["host", "port"])
    if len(proxies) == 1:
        parsed = parsed.set(host="127.0.0.1", port=proxies[0].port)
    else:
        hosts = ",".join("127.0.0.1" for _ in proxies)
        ports = ",".join(str(proxy.port) for proxy in proxies)
        parsed = parsed.set(host=None, port=None)
        query = {"host": hosts, "port": ports, **query}
    return parsed.update_query_dict(query).render_as_string(hide_password=False)


@contextlib.contextmanager
def proxy_of(url: str) -> Iterator[Proxy]:
    """Run a proxy in front of the server of a URL while inside."""
    with Proxy(address_of(url)) as proxy:
        yield proxy
