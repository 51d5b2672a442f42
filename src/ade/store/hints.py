"""Hear what other processes changed: NOTIFY on PostgreSQL, a cheap look on SQLite.

Both are hints. A notification that is lost while the connection is down, or a change between two
looks, is found by the poll that every waiter does anyway.
"""

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import psycopg
from sqlalchemy.engine import URL

from ade.store.dialects.postgres import CHANNEL, libpq_url
from ade.store.dialects.sqlite import SqliteDialect
from ade.store.store import SqlStore

LOOK_SECONDS = 0.02
RECONNECT_SECONDS = 2.0
EVERYTHING = ("*",)
Publish = Callable[[Sequence[str]], None]


class Hints(Protocol):
    """Hear until closed."""

    def close(self) -> None:
        """Stop hearing."""
        ...


class _Thread:
    """Run a loop in a thread until closed."""

    def __init__(self, name: str) -> None:
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._hear, name=name, daemon=True)

    def start(self) -> None:
        """Begin to hear."""
        self._thread.start()

    def close(self) -> None:
        """Stop hearing."""
        self._closing.set()
        self._thread.join(timeout=5)

    def _hear(self) -> None:
        raise NotImplementedError


class PostgresHints(_Thread):
    """Listen on a connection of its own, and open it again when it breaks."""

    def __init__(self, url: URL, publish: Publish) -> None:
        super().__init__("ade-listen")
        self._url = libpq_url(url)
        self._publish = publish

    def _hear(self) -> None:
        while not self._closing.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._publish(EVERYTHING)  # whatever was missed while nobody listened
                    while not self._closing.is_set():
                        for note in connection.notifies(timeout=0.5):
                            self._publish(json.loads(note.payload))
            except psycopg.Error:
                self._closing.wait(RECONNECT_SECONDS)


class SqliteHints(_Thread):
    """Look at `data_version`, which changes when another connection has committed."""

    def __init__(self, url: URL, publish: Publish) -> None:
        super().__init__("ade-look")
        self._url = url
        self._publish = publish

    def _hear(self) -> None:
        connection = SqliteDialect().connect(self._url)
        seen = self._version(connection)
        while not self._closing.wait(LOOK_SECONDS):
            now = self._version(connection)
            if now != seen:
                seen = now
                self._publish(EVERYTHING)
        connection.close()

    @staticmethod
    def _version(connection: Any) -> int:
        return int(connection.execute("PRAGMA data_version").fetchone()[0])


def hear(store: SqlStore, publish: Publish) -> Hints | None:
    """Begin to hear what other processes change, where the database can tell."""
    hints: _Thread
    if store.dialect.name == "postgresql":
        hints = PostgresHints(store.url, publish)
    elif store.dialect.name == "sqlite" and store.url.database not in (None, "", ":memory:"):
        hints = SqliteHints(store.url, publish)
    else:
        return None
    hints.start()
    return hints
