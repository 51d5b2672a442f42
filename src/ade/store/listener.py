"""Listen for what other processes change, by PostgreSQL's LISTEN and NOTIFY.

A notification is a hint. Every waiter polls as well, so one that is lost while the connection is
down delays it only. SQLite has no notifications: there the writing connection checks `data_version`
whenever it is idle (`Session`).
"""

import json
import threading
from collections.abc import Callable, Sequence

import psycopg

from ade.store.dialects.postgres import CHANNEL, libpq_url
from ade.store.session import EVERYTHING, Session

RECONNECT_SECONDS = 2.0
# How long `close` may have to wait for the thread.
CLOSE_POLL_SECONDS = 0.5
Publish = Callable[[Sequence[str]], None]


class Listener:
    """Listen on its own connection, and open it again when it breaks."""

    def __init__(self, session: Session, publish: Publish) -> None:
        self._session = session
        self._publish = publish
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ade-listen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with psycopg.connect(libpq_url(self._session.url), autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._publish(EVERYTHING)  # changes may have been missed until now
                    while not self._closing.is_set():
                        for note in connection.notifies(timeout=CLOSE_POLL_SECONDS):
                            self._receive(note)
            except psycopg.Error:
                self._closing.wait(RECONNECT_SECONDS)

    def _receive(self, note: psycopg.Notify) -> None:
        if note.pid != self._session.writer_pid:  # the session publishes its own changes
            self._publish(json.loads(note.payload))


def listen(session: Session, publish: Publish) -> Listener | None:
    """Start to listen for changes of other processes, where the database sends notifications."""
    return Listener(session, publish) if session.dialect.name == "postgresql" else None
