"""The listener survives whatever comes over its connection, and is restored when it is lost."""

import queue
from collections.abc import Iterator, Sequence
from contextlib import closing

import psycopg
import pytest
from tests.databases import libpq
from tests.processes import eventually
from tests.proxy import Proxy, proxy_of, through

from ade.store.listener import Listener
from ade.store.session import Session

pytestmark = pytest.mark.postgresql
NOTICE_SECONDS = 20.0
FOREIGN = ["", "hello", "{}", "[1]", '"work"', "null", '["work", 2]', "[" * 5000]


class Heard:
    """Hold what a listener has published."""

    def __init__(self) -> None:
        self._topics: queue.SimpleQueue[Sequence[str]] = queue.SimpleQueue()

    def publish(self, topics: Sequence[str]) -> None:
        """Keep what arrived."""
        self._topics.put(topics)

    def wait_for(self, topic: str) -> None:
        """Wait until a topic arrives."""
        while topic not in self._topics.get(timeout=NOTICE_SECONDS):
            pass


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxy_of(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def listener(postgres_url: str, proxy: Proxy, heard: Heard) -> Iterator[Listener]:
    with (
        closing(Session(through(postgres_url, proxy))) as session,
        closing(Listener(session, heard.publish)) as listener,
    ):
        heard.wait_for("*")
        yield listener


def notify(url: str, topic: str) -> None:
    """Commit a change of a topic in another process's session."""
    with closing(Session(url)) as other:
        other.change(lambda transaction: transaction.notify(topic))


def test_notifications_of_others_are_ignored(
    listener: Listener, heard: Heard, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(libpq(postgres_url), autocommit=True) as foreign:
        for payload in FOREIGN:
            foreign.execute("SELECT pg_notify('ade', %s)", (payload,))
    notify(postgres_url, "work")
    heard.wait_for("work")
    assert listener.is_listening
    said = capsys.readouterr().out
    assert said.count("notification ignored") == 1
    assert "hello" not in said


def test_a_listener_that_fails_to_publish_goes_on(
    listener: Listener, heard: Heard, postgres_url: str
) -> None:
    publish, listener._publish = listener._publish, lambda topics: 1 / 0  # type: ignore
    notify(postgres_url, "lost")
    eventually(lambda: not listener.is_listening)
    listener._publish = publish
    heard.wait_for("*")
    notify(postgres_url, "work")
    heard.wait_for("work")


@pytest.mark.parametrize("fault", ["silence_existing", "reset"])
def test_a_lost_connection_is_restored(
    listener: Listener, heard: Heard, proxy: Proxy, postgres_url: str, fault: str
) -> None:
    getattr(proxy, fault)()
    heard.wait_for("*")  # it asks for everything that it may have missed
    notify(postgres_url, "work")
    heard.wait_for("work")


def test_a_missing_listener_is_known(listener: Listener, heard: Heard, proxy: Proxy) -> None:
    assert listener.is_listening
    proxy.refuse()
    eventually(lambda: not listener.is_listening)
    proxy.restore()
    heard.wait_for("*")
    eventually(lambda: listener.is_listening)
