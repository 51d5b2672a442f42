"""Hear what other processes changed, by NOTIFY.

A notification is a hint. One that is lost while the connection is down is made up for by the poll
that every waiter does anyway. SQLite has no such thing: there the writing connection looks at
`data_version` whenever it is idle (`Session`).
"""

import json
import threading
from collections.abc import Callable, Sequence

import psycopg

from ade.store.dialects.postgres import CHANNEL, libpq_url
from ade.store.session import EVERYTHING, Session

RECONNECT_SECONDS = 2.0
CLOSE_LOOK_SECONDS = 0.5
Publish = Callable[[Sequence[str]], None]


class Hints:
    """Listen on a connection of its own, and open it again when it breaks."""

    def __init__(self, store: Session, publish: Publish) -> None:
        self._store = store
        self._publish = publish
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._hear, name="ade-listen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop hearing."""
        self._closing.set()
        self._thread.join(timeout=5)

    def _hear(self) -> None:
        while not self._closing.is_set():
            try:
                with psycopg.connect(libpq_url(self._store.url), autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._publish(EVERYTHING)  # whatever was missed while nobody listened
                    while not self._closing.is_set():
                        for note in connection.notifies(timeout=CLOSE_LOOK_SECONDS):
                            self._pass_on(note)
            except psycopg.Error:
                self._closing.wait(RECONNECT_SECONDS)

    def _pass_on(self, note: psycopg.Notify) -> None:
        if note.pid != self._store.writer_pid:  # what we changed ourselves is known already
            self._publish(json.loads(note.payload))


def hear(store: Session, publish: Publish) -> Hints | None:
    """Begin to hear what other processes change, where the database tells."""
    return Hints(store, publish) if store.dialect.name == "postgresql" else None
