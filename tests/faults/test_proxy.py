"""The proxy of the fault tests breaks a network in the ways that it says."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.proxy import Proxy

ANSWER_SECONDS = 5.0
SILENCE_SECONDS = 0.3


class Echo:
    """Answer each piece with a name and the piece."""

    def __init__(self, name: bytes) -> None:
        self._name = name
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while piece := connection.recv(1024):
                connection.sendall(self._name + piece)

    def close(self) -> None:
        """Accept no more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def echoes() -> Iterator[tuple[Echo, Echo]]:
    pair = Echo(b"1:"), Echo(b"2:")
    yield pair
    for echo in pair:
        echo.close()


@pytest.fixture
def proxy(echoes: tuple[Echo, Echo]) -> Iterator[Proxy]:
    with Proxy(echoes[0].address) as proxy:
        yield proxy


def _connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), ANSWER_SECONDS)


def _ask(connection: socket.socket, seconds: float = ANSWER_SECONDS) -> bytes:
    connection.settimeout(seconds)
    connection.sendall(b"x")
    return connection.recv(100)


def test_half_open_connections_are_silent_and_new_ones_work(proxy: Proxy) -> None:
    with _connect(proxy) as old:
        assert _ask(old) == b"1:x"
        proxy.silence_existing()
        with pytest.raises(TimeoutError):
            _ask(old, SILENCE_SECONDS)
        with _connect(proxy) as new:
            assert _ask(new) == b"1:x"


def test_a_silent_proxy_accepts_and_never_answers_until_it_is_restored(proxy: Proxy) -> None:
    proxy.silence_all()
    with _connect(proxy) as silent, pytest.raises(TimeoutError):
        _ask(silent, SILENCE_SECONDS)
    proxy.restore()
    with _connect(proxy) as new:
        assert _ask(new) == b"1:x"


def test_a_reset_breaks_connections_and_a_switch_changes_the_server(
    proxy: Proxy, echoes: tuple[Echo, Echo]
) -> None:
    with _connect(proxy) as old:
        assert _ask(old) == b"1:x"
        proxy.switch(echoes[1].address)
        with pytest.raises(ConnectionError):
            _ask(old)
    with _connect(proxy) as new:
        assert _ask(new) == b"2:x"


def test_an_answer_is_lost_after_what_was_named(proxy: Proxy) -> None:
    with _connect(proxy) as connection:
        assert _ask(connection) == b"1:x"
        proxy.lose_answer_after(b"x")
        with pytest.raises(ConnectionError):
            _ask(connection)


def test_a_delay_holds_every_piece_back(proxy: Proxy) -> None:
    proxy.delay_seconds = SILENCE_SECONDS
    with _connect(proxy) as connection:
        with pytest.raises(TimeoutError):
            _ask(connection, SILENCE_SECONDS)
        connection.settimeout(ANSWER_SECONDS)
        assert connection.recv(100) == b"1:x"
