"""Read and change tables that are small and change rarely.

They stay out of the group commit: statements run one after the other on a connection of their own,
in a thread of their own, never in the event loop.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy.sql.base import Executable

from ade.clock import Clock, SystemClock
from ade.domain.errors import AdeError, Unavailable
from ade.store.compiled import Compiler
from ade.store.dialects import dialect_for
from ade.store.statements import Statement

RUNS_MAX = 5
Found = TypeVar("Found")


class Desk:
    """Hold the connection and its thread; subclasses say what is read and changed."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self._dialect, self._url = dialect_for(url)
        self._clock = clock or SystemClock()
        self._compiler = Compiler(self._dialect)
        self._connection: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ade-directory")

    def close(self) -> None:
        """Let go of the database."""
        self._thread.submit(self._disconnect).result()
        self._thread.shutdown(wait=True)

    # --- in the thread --------------------------------------------------------------------------

    async def _run(self, work: Callable[[], Found], *, write: bool = True) -> Found:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: self._again(work, write=write))

    def _again(self, work: Callable[[], Found], *, write: bool = True) -> Found:
        """Run work in a transaction; after a lost race or a broken connection, once more."""
        for run in range(1, RUNS_MAX + 1):
            try:
                return self._transact(work, write=write)
            except AdeError:
                raise
            except Exception as error:
                if run == RUNS_MAX or not (self._dialect.is_conflict(error) or run == 1):
                    raise
        raise AssertionError("unreachable")

    def _transact(self, work: Callable[[], Found], *, write: bool) -> Found:
        if self._connection is None:
            self._connection = self._connect()
        self._cursor = self._connection.cursor()
        try:
            self._dialect.begin(self._cursor, write=write)
            found = work()
            self._cursor.execute("COMMIT")
            return found
        except AdeError:
            self._cursor.execute("ROLLBACK")
            raise
        except BaseException:
            self._disconnect()
            raise

    def _connect(self) -> Any:
        try:
            return self._dialect.connect(self._url)
        except Exception as error:
            raise Unavailable("The database cannot be reached.") from error

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be broken already
                connection.close()

    def _do(self, statement: Executable) -> None:
        # A list in an IN has a place for each of its members only when it is asked for.
        spelled = {"render_postcompile": True}
        compiled: Any = statement.compile(  # type: ignore[attr-defined]
            dialect=self._dialect.core, compile_kwargs=spelled
        )
        values = compiled.construct_params()
        names = compiled.positiontup or ()
        self._cursor.execute(str(compiled), tuple(values[name] for name in names))

    def _rows(self, statement: Executable) -> list[tuple[Any, ...]]:
        self._do(statement)
        return [tuple(row) for row in self._cursor.fetchall()]

    def _first(self, statement: Executable) -> tuple[Any, ...] | None:
        return next(iter(self._rows(statement)), None)

    def _known(self, statement: Statement, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement that is spelled once and kept: for what each request looks up."""
        compiled = self._compiler.adhoc(statement, lambda: statement)
        self._cursor.execute(compiled.sql, compiled.arrange(values))
        return [tuple(row) for row in self._cursor.fetchall()]

    def _first_known(self, statement: Statement, *values: Any) -> tuple[Any, ...] | None:
        return next(iter(self._known(statement, *values)), None)
