"""PostgreSQL: many processes, SKIP LOCKED, notifications as a hint."""

import json
from typing import Any

import psycopg
from psycopg.types.string import TextLoader
from sqlalchemy import Insert, Select, Table, any_, bindparam, literal_column
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import URL
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.domain.errors import AdeError, StorageFull, Unavailable
from ade.store.dialects.bounded import DEADLINE_MARGIN_SECONDS, BoundedConnection, connect
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import UnnestedRows, array_literal

CHANNEL = "ade"
# PostgreSQL refuses notifications of 8000 bytes; a long list of topics becomes "everything".
NOTIFY_BYTES_MAX = 7900
EVERYTHING = '["*"]'
CONFLICTS = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
# Every statement of the kernel follows an index. A plan that is chosen once and never
# hashes, sorts or scans a table stays right when the queue grows from nothing to millions.
QUEUE_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
# A process that freezes inside a transaction must not hold its locks past its leases.
IDLE_TRANSACTION_SECONDS = 5.0
# Locks are given up a little before the statement that waits for them.
LOCK_SHARE = 0.8
# A migration may rewrite a large table; it waits for locks as long as another upgrade may take.
MIGRATION_SECONDS = 3600.0
MIGRATION_LOCK_SECONDS = 60.0
# A check of the whole database reads whole tables.
FREE_SECONDS = 3600.0
READ_ONLY = psycopg.errors.ReadOnlySqlTransaction
TOO_SLOW = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)


class PostgresDialect(Dialect):
    """Adapt the store to PostgreSQL."""

    name = "postgresql"
    core = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
    chains_changes = True
    takes_many = True
    row_source = UnnestedRows

    def insert_or_pass(self, table: Table) -> Insert:
        """Use ON CONFLICT DO NOTHING, which waits for an equal key that is being inserted."""
        return insert(table).on_conflict_do_nothing()

    def address(self, table: FromClause) -> ColumnElement[Any]:
        """Use the ctid, which holds still while the row is locked."""
        return literal_column(f"{table.name}.ctid")  # type: ignore[attr-defined]

    def locked(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock with FOR UPDATE."""
        return query.with_for_update(of=table)

    def shared(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock with FOR SHARE."""
        return query.with_for_update(read=True, of=table)

    def locked_skipping(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock with FOR UPDATE SKIP LOCKED."""
        return query.with_for_update(skip_locked=True, of=table)

    def materialized(self, query: Select[Any], name: str) -> FromClause:
        """Use a WITH; PostgreSQL never folds one that locks rows into the rest."""
        return query.cte(name)

    def one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """Use = ANY over an array."""
        return column == any_(bindparam(name, type_=ARRAY(column.type)))

    def list_parameter(self, members: list[Any]) -> str:
        """Use an array literal."""
        return array_literal(members)

    @property
    def _deadline_seconds(self) -> float:
        """Return how long this process waits for the answer to a statement."""
        return self.timeout_seconds + DEADLINE_MARGIN_SECONDS

    def connect(self, url: URL) -> BoundedConnection:
        """Open a connection with the queue's plans pinned and every commit durable."""
        timeouts = _timeouts(self.timeout_seconds, self.timeout_seconds * LOCK_SHARE)
        connection = connect(url, QUEUE_SETTINGS | timeouts, self._deadline_seconds)
        connection.prepared_max = 500
        connection.adapters.register_loader("uuid", TextLoader)
        return connection

    def begin(self, cursor: Any, *, write: bool) -> None:
        """Write at READ COMMITTED, which the row locks are made for; read in one snapshot.

        A connection that went silent since its last transaction is noticed here, at little cost.
        """
        cursor.connection.deadline_seconds = self._deadline_seconds
        with cursor.connection.answers_soon():
            cursor.execute("BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def lock_lanes(self, cursor: Any, lanes: list[str]) -> None:
        """Lock by advisory locks, in one order, so that two transactions cannot deadlock."""
        cursor.execute(
            "SELECT pg_advisory_xact_lock(key) FROM"
            " (SELECT DISTINCT hashtextextended(lane, 0) AS key FROM unnest(%s::text[]) AS lane"
            " ORDER BY key) AS keys",
            (sorted(lanes),),
        )

    def lock_table(self, cursor: Any, name: str) -> None:
        """Lock in EXCLUSIVE mode: others may still read."""
        cursor.execute(f"LOCK TABLE {name} IN EXCLUSIVE MODE".encode())

    def readable_error(self, error: Exception) -> AdeError | None:
        """Recognise a full disk, a slow statement and a server that cannot be reached."""
        if isinstance(error, psycopg.errors.DiskFull):
            return StorageFull("The disk with the database is full; nothing was changed.")
        if isinstance(error, READ_ONLY):
            return Unavailable("The database can only be read at the moment; try again shortly.")
        if isinstance(error, TOO_SLOW):
            return Unavailable(
                f"The database did not finish a statement within {self.timeout_seconds:g} s;"
                " nothing was changed. Try again shortly."
            )
        if isinstance(error, psycopg.OperationalError) and not self.is_conflict(error):
            return Unavailable("The database cannot be reached at the moment; try again shortly.")
        return None

    def is_of_no_use(self, error: Exception) -> bool:
        """Recognise a server that became a standby: another one takes writes now."""
        return isinstance(error, READ_ONLY)

    def discard_plans(self, connection: Any) -> None:
        """Discard the plans: one for an empty queue would scan all of a full one for each row."""
        with connection.answers_soon():
            connection.execute("DISCARD PLANS")

    def plan_freely(self, cursor: Any) -> None:
        """Undo what is pinned for the queue, and let statements of this transaction take long."""
        for name in ("seqscan", "hashjoin", "mergejoin", "bitmapscan"):
            cursor.execute(f"SET LOCAL enable_{name} = on".encode())
        cursor.execute(b"SET LOCAL plan_cache_mode = force_custom_plan")
        cursor.execute(b"SET LOCAL statement_timeout = 0")
        cursor.connection.deadline_seconds = FREE_SECONDS

    def plan_by_values(self, cursor: Any) -> None:
        """Plan each statement for its values: a generic plan takes a rare status for a usual one,
        and a tenth of the table for the length of a page."""
        cursor.execute(b"SET LOCAL plan_cache_mode = force_custom_plan")

    def export_snapshot(self, cursor: Any) -> str:
        """Export the snapshot of a reading transaction, which may then stay idle for long."""
        cursor.execute(b"SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute(b"SELECT pg_export_snapshot()")
        return str(cursor.fetchone()[0])

    def server_now_us(self, connection: Any) -> int | None:
        """Ask the server, so that hosts whose clocks differ agree on when a lease ends."""
        query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return int(connection.execute(query).fetchone()[0])

    def is_conflict(self, error: Exception) -> bool:
        """Recognise a lost race for a unique key, a deadlock, a serialisation failure."""
        return isinstance(error, CONFLICTS)

    def commit(self, cursor: Any, topics: list[str]) -> None:
        """Commit and notify the listeners of these topics, in one round trip."""
        if not topics:
            cursor.execute("COMMIT")
            return
        quoted = _notification(topics).replace("'", "''")
        cursor.execute(f"NOTIFY {CHANNEL}, '{quoted}'; COMMIT".encode(), prepare=False)


def _notification(topics: list[str]) -> str:
    if sum(map(len, topics)) > NOTIFY_BYTES_MAX:
        return EVERYTHING
    payload = json.dumps(topics)
    return payload if len(payload) <= NOTIFY_BYTES_MAX else EVERYTHING


def _timeouts(statement_seconds: float, lock_seconds: float) -> dict[str, str]:
    """Return the settings by which the server gives up statements and idle transactions."""
    return {
        "idle_in_transaction_session_timeout": _milliseconds(IDLE_TRANSACTION_SECONDS),
        "statement_timeout": _milliseconds(statement_seconds),
        "lock_timeout": _milliseconds(lock_seconds),
    }


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))


def connect_for_migration(url: URL) -> BoundedConnection:
    """Open a connection whose statements may take long."""
    timeouts = _timeouts(MIGRATION_SECONDS, MIGRATION_LOCK_SECONDS)
    connection = connect(url, timeouts, MIGRATION_SECONDS + DEADLINE_MARGIN_SECONDS)
    connection.autocommit = False
    return connection
