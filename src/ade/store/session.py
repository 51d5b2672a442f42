"""The session of a database: one connection that writes, a few that read, and notifications."""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

from ade.clock import Clock, SystemClock
from ade.domain.errors import AdeError, Unavailable
from ade.store.compile import Compiler, Rewrite
from ade.store.database_time import sync_clock
from ade.store.dialects import dialect_for
from ade.store.executor import Executor
from ade.store.group_commit import GroupCommit, OutcomeUnknown, Unreachable
from ade.store.job_counts import CounterMemory
from ade.store.port import OnCommit, Result, Transaction, Verb
from ade.store.reading import SqlReading
from ade.store.storage_usage import VersionSizes
from ade.store.transaction import SqlTransaction

READERS = 4
# How often the owner of a SQLite file checks whether another process has written to it.
OTHER_WRITERS_SECONDS = 0.05
EVERYTHING = ("*",)
# After an attempt to connect that took longer than this, others are refused for as long: each would
# wait in vain, one after the other.
RECONNECT_SECONDS = 1.0
# How often the clock of the database is read, and its plans are made anew.
REFRESH_SECONDS = 1.0


@dataclass(slots=True)
class _Change:
    """Hold a piece of work, and its outcome as soon as it ran: before it has committed."""

    work: Callable[[SqlTransaction], Any]
    outcome: Any = None


def _change(transaction: Any, changes: list[_Change]) -> list[Any]:
    """Run the changes of many callers in one transaction; each is refused by itself."""
    for change in changes:
        change.outcome = transaction.attempt(change.work)
    return [change.outcome for change in changes]


class Session:
    """Hold the connections to a SQL database: one that writes, and a few that read.

    Everything that ADE keeps goes through one session: jobs by verbs (`write`), the rest by single
    changes (`change`) on the ports of a transaction, and reads beside them (`read`).
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        on_commit: OnCommit = lambda topics: None,
        rewrite: Rewrite | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.dialect, self.url = dialect_for(url)
        if timeout_seconds is not None:
            self.dialect.timeout_seconds = timeout_seconds
        self.clock = clock or SystemClock()
        self.on_commit = on_commit
        self._compiler = Compiler(self.dialect, rewrite)
        self._version_sizes: VersionSizes = {}
        self._counters = CounterMemory()
        self._connection: Any = None
        self._reader = threading.local()
        self._opened: set[Any] = set()
        self._refusal: tuple[float, Unreachable] | None = None
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="ade-reader")
        # Called with the number of items in each group that was committed.
        self.on_group: Callable[[int], None] = lambda items: None
        self._refreshed_at = -math.inf
        self._seen_version: int | None = None
        self._group = GroupCommit(
            self._commit,
            self.dialect.is_conflict,
            last=_change,
            counted=self._count,
            idle=self._check_for_other_writers,
            idle_seconds=None if self.dialect.many_writers else OTHER_WRITERS_SECONDS,
        )

    def write(self, verb: Verb, items: list[Any]) -> Sequence[Any]:
        """Run a verb and wait for its commit."""
        return self._group.call(verb, items)

    def awrite(self, verb: Verb, items: list[Any]) -> "asyncio.Future[Sequence[Any]]":
        """Run a verb; the future resolves when it has committed."""
        return self._group.acall(verb, items)

    def change(
        self,
        work: Callable[[SqlTransaction], Result],
        took_place: Callable[[SqlReading, Result], bool] | None = None,
    ) -> Result:
        """Run one piece of work and wait for its commit; raise the AdeError that refuses it.

        If the connection breaks during the commit, `took_place` looks for what the work returned;
        if it is not found, or cannot be looked for, OutcomeUnknown is raised.
        """
        change = _Change(work)
        try:
            self._group.call(_change, [change])
        except OutcomeUnknown as unknown:
            with _still(unknown):
                if not self.read(_look_up(change, took_place)):
                    raise
        return cast(Result, _value(change))

    async def achange(
        self,
        work: Callable[[SqlTransaction], Result],
        took_place: Callable[[SqlReading, Result], bool] | None = None,
    ) -> Result:
        """Do the same as `change` without holding up the event loop."""
        change = _Change(work)
        try:
            await self._group.acall(_change, [change])
        except OutcomeUnknown as unknown:
            with _still(unknown):
                if not await self.aread(_look_up(change, took_place)):
                    raise
        return cast(Result, _value(change))

    def read(self, look: Callable[[SqlReading], Result]) -> Result:
        """Read in one snapshot."""
        return self._readers.submit(self._read, look).result()

    async def aread(self, look: Callable[[SqlReading], Result]) -> Result:
        """Read in one snapshot without holding up the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, look)

    def close(self) -> None:
        """Finish what was begun and close the connections."""
        self._group.close()
        self._readers.shutdown(wait=True, cancel_futures=True)
        for connection in list(self._opened):
            connection.close()
        if self._connection is not None:
            self._connection.close()

    def _commit(self, work: Callable[[Transaction], Any]) -> Any:
        """Run work in one transaction of the writing connection, then publish what changed."""
        is_new = self._connection is None
        if is_new:
            self._connection = self._connect()
            self._refreshed_at = -math.inf  # another server may answer now
        began = committing = False
        try:
            self._refresh()
            cursor = self._connection.cursor()
            self.dialect.begin(cursor, write=True)
            began = True
            sql = Executor(cursor, self._compiler)
            transaction = SqlTransaction(
                sql, self._version_sizes, self.clock.now_us(), self._counters
            )
            outcome = work(transaction)
            new_counters = transaction.job_counts.flush()
            topics = list(transaction.topics)
            committing = True
            self.dialect.commit(cursor, topics)
            self._counters.keys |= new_counters
        except BaseException as error:
            self._connection = self._roll_back(self._connection, error)
            if committing and self._connection is None:
                raise OutcomeUnknown(
                    "The connection to the database broke during a commit;"
                    " whether the change was committed is unknown."
                ) from error
            if self._connection is None and not is_new:
                return self._commit(work)  # it broke before the commit: nothing took place
            self._raise_readable(error, Unavailable if began else Unreachable)
            raise
        if topics:
            with contextlib.suppress(
                Exception
            ):  # a lost notification must not make a commit run again
                self.on_commit(topics)
        return outcome

    def _raise_readable(
        self, error: BaseException, unavailable: type[Unavailable] = Unavailable
    ) -> None:
        """Raise an AdeError instead of a database error that an operator or caller can act on."""
        readable = self.dialect.readable_error(error) if isinstance(error, Exception) else None
        if type(readable) is Unavailable:
            raise unavailable(readable.detail) from error
        if readable is not None:
            raise readable from error

    def _roll_back(self, connection: Any, error: BaseException) -> Any:
        """Roll back and return the connection, or close it and return None if it is of no use."""
        if isinstance(error, Exception) and self.dialect.is_of_no_use(error):
            with contextlib.suppress(Exception):
                connection.close()
            return None
        return _roll_back(connection)

    def _refresh(self) -> None:
        """From time to time, read the clock of the database and let it make new plans."""
        now = time.monotonic()
        if now - self._refreshed_at > REFRESH_SECONDS:
            self._refreshed_at = now
            self.dialect.discard_plans(self._connection)
            if isinstance(self.clock, SystemClock):
                sync_clock(self.clock, self.dialect, self._connection)

    def _count(self, items: int) -> None:
        self.on_group(items)

    def _check_for_other_writers(self) -> None:
        """Notify everyone if another process has written to the SQLite file."""
        if self._connection is None:
            return
        version = self.dialect.data_version(self._connection)
        if version != self._seen_version:
            if self._seen_version is not None:
                self.on_commit(EVERYTHING)
            self._seen_version = version

    @property
    def writer_pid(self) -> int | None:
        """Return the process id of the writing connection on the server, if it has one."""
        info = getattr(self._connection, "info", None)
        return getattr(info, "backend_pid", None)

    def _read(self, look: Callable[[SqlReading], Result]) -> Result:
        """Run a read in one transaction of this thread's connection."""
        connection = getattr(self._reader, "connection", None)
        is_new = connection is None
        if connection is None:
            connection = self._connect()
            self.dialect.prepare_reader(connection)
            self._opened.add(connection)
        self._reader.connection = None  # until the read has gone well
        try:
            cursor = connection.cursor()
            self.dialect.begin(cursor, write=False)
            found = look(SqlReading(Executor(cursor, self._compiler), self._version_sizes))
            cursor.execute("COMMIT")
        except BaseException as error:
            self._reader.connection = _roll_back(connection)
            if self._reader.connection is None:
                self._opened.discard(connection)
                if not is_new:
                    return self._read(look)
            self._raise_readable(error)
            raise
        self._reader.connection = connection
        return found

    def _connect(self) -> Any:
        began = time.monotonic()
        if self._refusal is not None and began < self._refusal[0]:
            raise Unreachable(self._refusal[1].detail)
        try:
            return self.dialect.connect(self.url)
        except Exception as error:
            name = self.url._replace(username=None, password=None).render_as_string()
            refused = Unreachable(f"The database {name} cannot be reached: {_first_line(error)}")
            now = time.monotonic()
            if now - began > RECONNECT_SECONDS:
                self._refusal = now + RECONNECT_SECONDS, refused
            raise refused from error


def _look_up(
    change: _Change, took_place: Callable[[SqlReading, Any], bool] | None
) -> Callable[[SqlReading], bool]:
    """Look up a change whose commit broke; a change that was refused needs no look."""

    def look(reading: SqlReading) -> bool:
        if isinstance(change.outcome, AdeError):
            return True
        return took_place is not None and took_place(reading, change.outcome)

    return look


@contextlib.contextmanager
def _still(unknown: OutcomeUnknown) -> Iterator[None]:
    """Raise OutcomeUnknown again if the outcome cannot be looked up either."""
    try:
        yield
    except Unavailable as error:
        raise unknown from error


def _value(change: _Change) -> Any:
    if isinstance(change.outcome, AdeError):
        raise change.outcome
    return change.outcome


def _roll_back(connection: Any) -> Any:
    """Roll back and return the connection, or close it and return None if it is broken."""
    try:
        connection.cursor().execute("ROLLBACK")
        return connection
    except Exception as error:
        if "no transaction is active" in str(error):
            return connection
        with contextlib.suppress(Exception):  # it is broken: there may be nothing left to close
            connection.close()
        return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
