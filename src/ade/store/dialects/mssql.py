"""SQL Server: the same statements by compare-and-swap and READPAST.

Unproven: no server could be had where this was built. Its statements are compiled and parsed by the
tests on every run, and the conformance suite runs on `ADE_TEST_MSSQL_URL`.
"""

from typing import Any

from sqlalchemy import Select, Text, bindparam, func, literal_column, select
from sqlalchemy.dialects.mssql.mssqlpython import MSDialect_mssqlpython
from sqlalchemy.engine import URL
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import is_eligible, jobs

# Violation of a unique key, of a unique index, chosen as deadlock victim.
CONFLICT_NUMBERS = ("2627", "2601", "1205")


class MssqlDialect(Dialect):
    """Adapt the store to SQL Server."""

    name = "mssql"
    core = MSDialect_mssqlpython(paramstyle="qmark")  # type: ignore[no-untyped-call]
    core._supports_offset_fetch = True  # known from the server only once connected; 2012 and later

    savepoint = "SAVE TRANSACTION batch"
    rollback_to_savepoint = "ROLLBACK TRANSACTION batch"

    def limited(self, query: Select[Any], limit: ColumnElement[int]) -> Select[Any]:
        """Use OFFSET ... FETCH, which takes a parameter and needs an order."""
        if not query._order_by_clauses:
            query = query.order_by(literal_column("(SELECT NULL)"))
        return query.limit(limit).offset(0)

    def locked(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock with UPDLOCK."""
        return query.with_hint(table, "WITH (UPDLOCK, ROWLOCK)", "mssql")

    def shared(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Keep the shared lock until the end with HOLDLOCK."""
        return query.with_hint(table, "WITH (HOLDLOCK, ROWLOCK)", "mssql")

    def locked_skipping(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock with UPDLOCK and skip locked rows with READPAST."""
        return query.with_hint(table, "WITH (UPDLOCK, READPAST, ROWLOCK)", "mssql")

    def next_workspaces(self, p: Parameters) -> Executable:
        """List by DISTINCT: a recursive query may not hold a limited one here."""
        job = jobs.alias("job")
        query = (
            select(job.c.workspace_id)
            .where(
                is_eligible(job), job.c.pool == p["pool"], job.c.workspace_id > p["workspace_id"]
            )
            .distinct()
            .order_by(job.c.workspace_id)
        )
        return self.limited(query, p["limit"])

    def one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """Use OPENJSON."""
        members = func.openjson(bindparam(name, type_=Text())).table_valued("value")
        return column.in_(select(members.c.value))

    def connect(self, url: URL) -> Any:
        """Open a connection that locks by row versions for readers."""
        import mssql_python

        args, options = self.core.create_connect_args(url)
        connection = mssql_python.connect(*args, **options)
        connection.autocommit = True
        return connection

    def begin(self, cursor: Any, *, write: bool) -> None:
        """Begin, rolling back whole on any error."""
        cursor.execute("SET XACT_ABORT ON")
        cursor.execute("BEGIN TRANSACTION")

    def lock_lanes(self, cursor: Any, lanes: list[str]) -> None:
        """Lock by application locks that the transaction owns, in one order."""
        for lane in sorted(set(lanes)):
            cursor.execute(
                "EXEC sp_getapplock @Resource = ?, @LockMode = 'Exclusive',"
                " @LockOwner = 'Transaction', @LockTimeout = 10000",
                (lane[:255],),
            )

    def lock_table(self, cursor: Any, name: str) -> None:
        """Lock with TABLOCKX until the end of the transaction."""
        cursor.execute(f"SELECT 1 FROM {name} WITH (TABLOCKX, HOLDLOCK) WHERE 1 = 0")
        cursor.fetchall()

    def server_now_us(self, connection: Any) -> int | None:
        """Ask the server, so that hosts whose clocks differ agree on when a lease ends."""
        query = "SELECT DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())"
        cursor = connection.cursor()
        cursor.execute(query)
        return int(cursor.fetchone()[0])

    def is_conflict(self, error: Exception) -> bool:
        """Recognise a lost race for a unique key, and a deadlock."""
        return any(number in str(error) for number in CONFLICT_NUMBERS)
