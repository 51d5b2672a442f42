"""Listen for what other processes change, by PostgreSQL's LISTEN and NOTIFY.

A notification is a hint. Every waiter polls as well, so one that is lost while the connection is
down delays it only. SQLite has no notifications: there the writing connection checks `data_version`
whenever it is idle (`Session`).

    failure                                  what happens
    ---------------------------------------  --------------------------------------------------
    a payload that is not ours               it is ignored, and logged once a minute
    the connection breaks, or anything else  it is opened again, after a wait that grows to 5 s
    the connection goes silent               it is asked a question now and then, and given up
                                             when the answer does not come
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence

import psycopg
import structlog

from ade.store.dialects.bounded import ANSWER_SECONDS, BoundedConnection, connect
from ade.store.dialects.postgres import CHANNEL
from ade.store.session import EVERYTHING, Session

RECONNECT_SECONDS_MIN = 0.5
RECONNECT_SECONDS_MAX = 5.0
# How often a connection without notifications is asked whether it is still there.
ASK_SECONDS = 3.0
# How long `close` may have to wait for the thread, before it takes its connection away.
CLOSE_POLL_SECONDS = 0.5
CLOSE_SECONDS = 1.0
MISSED_SECONDS = 2.0
LOG_SECONDS_MIN = 60.0
# It sends nothing that costs the server anything.
SETTINGS = {"statement_timeout": "3000", "lock_timeout": "3000"}
Publish = Callable[[Sequence[str]], None]
log = structlog.get_logger()


class Listener:
    """Listen on its own connection, and open it again when it breaks."""

    def __init__(self, session: Session, publish: Publish) -> None:
        self._session = session
        self._publish = publish
        self._connection: BoundedConnection | None = None
        self._closing = threading.Event()
        self._ignored_at: float | None = None
        self._lost_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="ade-listen", daemon=True)
        self._thread.start()

    @property
    def is_listening(self) -> bool:
        """Tell whether notifications arrive: the connection answered its last question."""
        return self._connection is not None and self._thread.is_alive()

    @property
    def is_missed(self) -> bool:
        """Tell whether notifications have not arrived for longer than it takes to connect."""
        return not self.is_listening and time.monotonic() - self._lost_at > MISSED_SECONDS

    def close(self) -> None:
        """Stop listening; a connection that hangs is taken away from the thread."""
        self._closing.set()
        self._thread.join(timeout=CLOSE_SECONDS)
        connection = self._connection
        if self._thread.is_alive() and connection is not None:
            connection.abandon()

    def _run(self) -> None:
        wait_seconds = RECONNECT_SECONDS_MIN
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                self._listen()
            except Exception as error:
                if self._closing.is_set():
                    return
                if time.monotonic() - began > RECONNECT_SECONDS_MAX:
                    wait_seconds = RECONNECT_SECONDS_MIN  # it worked for a while
                log.warning("notifications are lost", reason=type(error).__name__)
                self._closing.wait(wait_seconds)
                wait_seconds = min(2 * wait_seconds, RECONNECT_SECONDS_MAX)

    def _listen(self) -> None:
        with contextlib.closing(connect(self._session.url, SETTINGS, ANSWER_SECONDS)) as connection:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            self._connection = connection
            try:
                self._publish(EVERYTHING)  # changes may have been missed until now
                self._receive_all(connection)
            finally:
                self._connection, self._lost_at = None, time.monotonic()

    def _receive_all(self, connection: BoundedConnection) -> None:
        asked_at = time.monotonic()
        while not self._closing.is_set():
            for note in connection.notifies(timeout=CLOSE_POLL_SECONDS):
                self._receive(note)
            if time.monotonic() - asked_at > ASK_SECONDS:
                connection.execute("SELECT 1")
                asked_at = time.monotonic()

    def _receive(self, note: psycopg.Notify) -> None:
        if note.pid == self._session.writer_pid:  # the session publishes its own changes
            return
        topics = _topics(note.payload)
        if topics is not None:
            self._publish(topics)
        elif self._ignored_at is None or time.monotonic() - self._ignored_at > LOG_SECONDS_MIN:
            self._ignored_at = time.monotonic()
            # Without its content, which may be anyone's.
            log.warning("notification ignored: not written by ADE", channel=CHANNEL, pid=note.pid)


def _topics(payload: str) -> list[str] | None:
    """Read the topics of a notification; None if it is not one of ours."""
    try:
        topics = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if isinstance(topics, list) and all(isinstance(topic, str) for topic in topics):
        return topics
    return None


def listen(session: Session, publish: Publish) -> Listener | None:
    """Start to listen for changes of other processes, where the database sends notifications."""
    return Listener(session, publish) if session.dialect.name == "postgresql" else None
