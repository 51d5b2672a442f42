"""Connections to PostgreSQL that cannot hang.

The model. A statement is written and its answer awaited under a deadline of this process. When it
passes, the socket is shut down and the connection closed; whoever used it sees a broken connection.

    failure                                   what notices it
    ----------------------------------------  ------------------------------------------------
    the host does not answer a connection     connect_timeout, for each address
    the host is gone, packets are dropped     keepalives and tcp_user_timeout
    the server is slow, or waits for a lock   statement_timeout and lock_timeout, on the server:
                                              the connection stays usable
    a peer acknowledges and never answers     the deadline here: TCP and the server see nothing
    the server became a standby               target_session_attrs, or the first refused write

It does not notice a server that answers with wrong data, and it does not bound the resolver: a name
that is looked up may take as long as the system's resolver waits.
"""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import make_conninfo
from sqlalchemy.engine import URL

# How long a server may take to answer what costs it nothing: BEGIN, SET, SELECT 1.
ANSWER_SECONDS = 3.0
# The server cancels a statement first, so that its connection can be kept.
DEADLINE_MARGIN_SECONDS = 1.0
POLL_SECONDS = 0.1
# For what libpq understands; the URL may say otherwise.
LIBPQ_DEFAULTS: Mapping[str, str] = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    # After a failover, an address may still belong to a server that can only be read.
    "target_session_attrs": "read-write",
}


class BoundedConnection(psycopg.Connection[Any]):
    """Give up a statement that is not answered in time, and the connection with it."""

    deadline_seconds = 11.0

    def wait(
        self, gen: PQGen[RV], interval: float = POLL_SECONDS, timeout: float | None = None
    ) -> RV:
        """Wait for an answer until the deadline; a wait with a timeout of its own may expire."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.deadline_seconds)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # this is not the server's answer: there is none
                self.abandon()
            raise

    @contextlib.contextmanager
    def answers_soon(self) -> Iterator[None]:
        """Expect answers within ANSWER_SECONDS while inside: nothing here costs the server much."""
        usual = self.deadline_seconds
        self.deadline_seconds = min(usual, ANSWER_SECONDS)
        try:
            yield
        finally:
            self.deadline_seconds = usual

    def abandon(self) -> None:
        """Close at once, without notifying the server: every thread that waits for it returns."""
        with (
            contextlib.suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(self.pgconn.socket)) as ours,
        ):
            ours.shutdown(socket.SHUT_RDWR)
        self.close()


def connect(url: URL, settings: Mapping[str, str], deadline_seconds: float) -> BoundedConnection:
    """Open a connection in autocommit mode with these settings of the session.

    What the URL says wins: its parameters, and the settings that its `options` name.
    """
    given = {name: value for name, value in LIBPQ_DEFAULTS.items() if name not in url.query}
    info = make_conninfo(libpq_url(url), **given)
    connection = BoundedConnection.connect(info, autocommit=True, prepare_threshold=0)
    connection.deadline_seconds = deadline_seconds
    options = str(url.query.get("options", ""))
    wanted = [f"SET {name} = {value}" for name, value in settings.items() if name not in options]
    try:
        with connection.answers_soon():
            connection.execute("; ".join(wanted).encode(), prepare=False)
    except BaseException:
        connection.abandon()
        raise
    return connection


def libpq_url(url: URL) -> str:
    """Return a SQLAlchemy URL in the form that libpq reads."""
    rendered = url.set(drivername="postgresql").render_as_string(hide_password=False)
    address, mark, query = rendered.partition("?")
    return address + mark + query.replace("+", "%20")  # libpq reads a plus sign as itself
