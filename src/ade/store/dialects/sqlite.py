"""SQLite: one process owns the writes, and no statement waits for a network."""

import sqlite3
from typing import Any

from sqlalchemy import BigInteger, Insert, Table, literal_column
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import ColumnElement, UnaryExpression
from sqlalchemy.sql.expression import FromClause

from ade.domain.errors import AdeError, StorageFull, Unavailable
from ade.store.dialects.dialect import Dialect
from ade.store.dialects.file_locks import holders
from ade.store.parameters import Parameters, ValuesRows
from ade.store.schema import is_running

VERSION_MIN = (3, 38, 0)
# How long a transaction waits for another program that has locked the file. ADE itself writes with
# one connection, so only a backup, a shell or a copy of the file can hold it.
BUSY_SECONDS = 5.0
# Every commit survives a power cut; readers never wait for the writer.
PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # Small: when pages of an index changed places, SQLite walks through all that it has cached at
    # the commit. What is not there is in the memory of the system.
    "PRAGMA cache_size = -8192",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA journal_size_limit = 67108864",
    # Keys of executions are scattered: of pages that change again and again, the last state is
    # copied from the log to the file. 16,000 pages are 64 MiB.
    "PRAGMA wal_autocheckpoint = 16000",
)
READER_CACHE_KIB = 1024
# The running jobs by their index, and of other rows those that were inserted last.
LATEST_RECORDED = """
    SELECT max(at) FROM (
        SELECT max(submitted_at) AS at
        FROM (SELECT submitted_at FROM requests ORDER BY rowid DESC LIMIT 1000)
        UNION ALL SELECT max(max(coalesce(started_at, 0), coalesce(finished_at, 0)))
        FROM (SELECT started_at, finished_at FROM jobs ORDER BY rowid DESC LIMIT 1000)
        UNION ALL SELECT max(started_at) FROM jobs WHERE status = 'running'
        UNION ALL SELECT max(created_at) FROM idempotency_keys
    )
"""


class SqliteDialect(Dialect):
    """Adapt the store to SQLite."""

    name = "sqlite"
    core = SQLiteDialect_pysqlite(paramstyle="qmark")
    many_writers = False
    row_source = ValuesRows
    _path: str | None = None

    def address(self, table: FromClause) -> ColumnElement[Any]:
        """Use the rowid, which does not change until the file is vacuumed."""
        return literal_column(f"{table.name}.rowid", BigInteger)  # type: ignore[attr-defined]

    def at_addresses(self, table: FromClause, p: Parameters) -> ColumnElement[bool]:
        """Match by the rowid alone: with the workspace beside it, SQLite scans all of its jobs."""
        return self.one_of(self.address(table), "addresses")

    def runs(self, job: FromClause) -> ColumnElement[bool]:
        """Compare with the constant: SQLite plans a statement anew for each parameter that it
        compares with what a partial index is about."""
        return is_running(job)

    def unindexed(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Put a plus before it: without statistics, SQLite takes the first index that fits."""
        plus = operators.custom_op[Any]("+")
        return UnaryExpression(column, operator=plus, type_=column.type)

    def rows_changed(self, cursor: Any) -> int:
        """Ask SQLite: the driver does not count for statements that begin with WITH."""
        cursor.execute("SELECT changes()")
        return int(cursor.fetchall()[0][0])

    def insert_or_pass(self, table: Table) -> Insert:
        """Use ON CONFLICT DO NOTHING."""
        return insert(table).on_conflict_do_nothing()

    def connect(self, url: URL) -> sqlite3.Connection:
        """Open the file in WAL mode with every commit durable."""
        if sqlite3.sqlite_version_info < VERSION_MIN:
            wanted = ".".join(map(str, VERSION_MIN))
            raise RuntimeError(f"SQLite {wanted} or later is needed, not {sqlite3.sqlite_version}")
        self._path = url.database
        connection = sqlite3.connect(
            url.database or ":memory:",
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        for pragma in PRAGMAS:
            connection.execute(pragma)
        return connection

    def prepare_reader(self, connection: Any) -> None:
        """Give a reader a small cache: there are several, and the system caches the file, too."""
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")

    def begin(self, cursor: Any, *, write: bool) -> None:
        """Take the write lock at once, so that what is read stays true until the commit."""
        cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def lock_lanes(self, cursor: Any, lanes: list[str]) -> None:
        """Do nothing: the write lock covers every lane."""

    def readable_error(self, error: Exception) -> AdeError | None:
        """Recognise a full disk and a database that stayed busy."""
        if isinstance(error, sqlite3.OperationalError):
            if "full" in str(error):
                return StorageFull("The disk with the database is full; nothing was changed.")
            if "locked" in str(error) or "busy" in str(error):
                return Unavailable(self._busy())
        return None

    def _busy(self) -> str:
        found = holders(self._path) if self._path else []
        who = " and ".join(found) or "Another program"
        keeps = "keep" if len(found) > 1 else "keeps"
        return (
            f"{who} {keeps} the database file locked, for more than {BUSY_SECONDS:g} s;"
            " nothing was changed. End its transaction, then try again."
        )

    def data_version(self, connection: Any) -> int | None:
        """Read `data_version`, which takes two microseconds."""
        return int(connection.execute("PRAGMA data_version").fetchone()[0])

    def latest_recorded_us(self, connection: Any) -> int:
        """Look at the newest rows only: a database of millions must not slow down the start."""
        try:
            return int(connection.execute(LATEST_RECORDED).fetchone()[0] or 0)
        except sqlite3.OperationalError:  # no tables yet
            return 0

    def is_conflict(self, error: Exception) -> bool:
        """Recognise a lost race for a unique key."""
        return isinstance(error, sqlite3.IntegrityError) and "UNIQUE" in str(error)
