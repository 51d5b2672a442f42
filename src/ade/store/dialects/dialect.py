"""What differs between databases."""

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sqlalchemy import (
    Insert,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
)
from sqlalchemy.engine import URL
from sqlalchemy.engine import Dialect as CoreDialect
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.domain.errors import AdeError
from ade.store.parameters import Parameters, RowSource
from ade.store.schema import is_eligible, jobs

# Below every identifier, for databases where the empty text is none.
FIRST_ID = "00000000-0000-0000-0000-000000000000"


class Dialect(ABC):
    """Write SQL, lock rows, connect and begin transactions for one kind of database."""

    name: ClassVar[str]
    core: CoreDialect
    # May one statement hold several changes (WITH ... UPDATE ... RETURNING)?
    chains_changes: ClassVar[bool] = False
    # Does a statement take many rows at once, or does it run once for each?
    takes_many: ClassVar[bool] = False
    # How an insert takes many rows; None: one by one.
    row_source: ClassVar[type[RowSource] | None] = None
    # May several processes write at the same time?
    many_writers: ClassVar[bool] = True

    # How long one statement may take.
    timeout_seconds: float = 10.0

    savepoint: ClassVar[str] = "SAVEPOINT batch"
    rollback_to_savepoint: ClassVar[str] = "ROLLBACK TO SAVEPOINT batch"

    def limited(self, query: Select[Any], limit: ColumnElement[int]) -> Select[Any]:
        """Return at most so many rows."""
        return query.limit(limit)

    def locked(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Keep the rows that are read from being changed by others."""
        return query

    def shared(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock the rows that are read against changes by others; others may still read them."""
        return query

    def locked_skipping(self, query: Select[Any], table: FromClause) -> Select[Any]:
        """Lock the rows that are read, and skip those that others have locked."""
        return query

    def unindexed(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return a column in a form that no index is chosen for, where the planner needs that."""
        return column

    def insert_or_pass(self, table: Table) -> Insert | None:
        """Return an insert that skips rows whose key exists, if the database has one."""
        return None

    def address(self, table: FromClause) -> ColumnElement[Any]:
        """Return what finds a row again fastest, as long as it is not moved."""
        return table.c.id

    def at_addresses(self, table: FromClause, p: Parameters) -> ColumnElement[bool]:
        """Match the rows of a workspace that were found at these addresses."""
        return and_(table.c.workspace_id == p["workspace_id"], self.one_of(table.c.id, "addresses"))

    def runs(self, job: FromClause) -> ColumnElement[bool]:
        """Match jobs that are running, where their rows are looked up by their keys.

        The status is compared with a parameter, not with a constant: a constant would let
        PostgreSQL scan the index of running jobs once for each row of parameters.
        """
        return job.c.status == literal("running")

    def materialized(self, query: Select[Any], name: str) -> FromClause:
        """Have a part of a statement evaluated once, before the rest."""
        return query.subquery(name)

    def next_workspaces(self, p: Parameters) -> Executable:
        """List workspaces with eligible jobs, in order, after a given one.

        A jump from each workspace to the next in the index: the cost is the number of workspaces
        returned, not the number of jobs that wait.
        """

        def next_after(workspace_id: ColumnElement[str]) -> Any:
            job = jobs.alias("job")
            return (
                select(job.c.workspace_id)
                .where(is_eligible(job), job.c.pool == p["pool"], job.c.workspace_id > workspace_id)
                .order_by(job.c.workspace_id, job.c.rank)  # this order belongs to one index only
                .limit(literal_column("1"))
                .scalar_subquery()
            )

        first = select(
            next_after(p["workspace_id"]).label("workspace_id"), literal_column("1").label("turn")
        )
        turns = first.cte("turns", recursive=True)
        following = select(
            next_after(turns.c.workspace_id).label("workspace_id"),
            turns.c.turn + literal_column("1"),
        ).where(turns.c.workspace_id.is_not(None), turns.c.turn < p["limit"])
        turns = turns.union_all(following)
        return select(turns.c.workspace_id).where(turns.c.workspace_id.is_not(None))

    def one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """Match a column with any member of a list that comes as one parameter."""
        members = func.json_each(bindparam(name, type_=Text())).table_valued("value")
        return column.in_(select(members.c.value))

    def list_parameter(self, members: list[Any]) -> str:
        """Return a list as the parameter that `one_of` takes."""
        return json.dumps(members)

    def rows_changed(self, cursor: Any) -> int:
        """Return how many rows the last statement changed."""
        return int(cursor.rowcount)

    @abstractmethod
    def connect(self, url: URL) -> Any:
        """Open a connection, set up for the kernel, in which transactions begin by `begin`."""

    def prepare_reader(self, connection: Any) -> None:  # noqa: B027 (most need nothing)
        """Prepare a new connection that only reads."""

    @abstractmethod
    def begin(self, cursor: Any, *, write: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def lock_lanes(self, cursor: Any, lanes: list[str]) -> None:
        """Lock which job is next in these lanes until the transaction ends."""

    def lock_table(self, cursor: Any, name: str) -> None:  # noqa: B027 (one writer needs none)
        """Keep others from changing any row of a table until the transaction ends."""

    def readable_error(self, error: Exception) -> AdeError | None:
        """Return an error that an operator or a caller can act on, if there is one."""
        return None

    def is_of_no_use(self, error: Exception) -> bool:
        """Tell whether a connection must be replaced although it is not broken."""
        return False

    def server_now_us(self, connection: Any) -> int | None:
        """Return the database's own time, where several machines share it."""
        return None

    def latest_recorded_us(self, connection: Any) -> int:
        """Return the latest time in the newest rows, where the database has no clock of its own."""
        return 0

    def discard_plans(self, connection: Any) -> None:
        """Discard plans that were made when the tables had another size."""
        return

    def plan_freely(self, cursor: Any) -> None:
        """Allow any plan until the end of the transaction, for statements over whole tables."""
        return

    def plan_by_values(self, cursor: Any) -> None:
        """Plan for the values of the parameters until the end of the transaction."""
        return

    def export_snapshot(self, cursor: Any) -> str:
        """Return a name by which other programs can read what this transaction sees."""
        raise NotImplementedError(f"{self.name} exports no snapshots")

    def data_version(self, connection: Any) -> int | None:
        """Return a number that changes when another connection commits, if reading it is cheap."""
        return None

    @abstractmethod
    def is_conflict(self, error: Exception) -> bool:
        """Tell whether a transaction failed only because of another, so that it may run again."""

    def commit(self, cursor: Any, topics: list[str]) -> None:
        """Commit, and notify other processes of these topics, where the database can."""
        cursor.execute("COMMIT")
