"""Run compiled statements on one cursor, inside one transaction."""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from ade.domain.ids import uuid7
from ade.store.compile import Compiled, Compiler
from ade.store.sql import Statement

# How many rows one statement takes at most: bounds the size of its parameters.
ROWS_PER_STATEMENT_MAX = 1000

Row = TypeVar("Row")


class Executor:
    """Hold a cursor and the compiler of its database; count the rows that may have changed."""

    def __init__(self, cursor: Any, compiler: Compiler) -> None:
        self.cursor = cursor
        self.compiler = compiler
        self.dialect = compiler.dialect
        self.rows_changed = 0

    def rows(self, name: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement once and return all its rows."""
        return self._fetch(self.compiler.named(name), values)

    def first(self, name: str, *values: Any) -> tuple[Any, ...] | None:
        """Run a statement once and return its first row, if it has one."""
        return next(iter(self.rows(name, *values)), None)

    def scalar(self, name: str, *values: Any) -> Any:
        """Run a statement once and return the first column of its first row, or None."""
        found = self.rows(name, *values)
        return found[0][0] if found else None

    def adhoc(self, key: Any, make: Callable[[], Statement], *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement whose text depends on the request, such as a filtered list."""
        return self._fetch(self.compiler.adhoc(key, make), values)

    def run(self, name: str, *values: Any) -> int:
        """Run a statement once that returns no rows, and return how many it changed."""
        statement = self.compiler.named(name)
        self.cursor.execute(statement.sql, statement.arrange(values))
        changed = int(self.cursor.rowcount)
        self.rows_changed += changed
        return changed

    def lock(self, name: str, *values: Any) -> None:
        """Run a statement that changes rows only in order to lock them."""
        statement = self.compiler.named(name)
        self.cursor.execute(statement.sql, statement.arrange(values))

    def run_many(self, name: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """Run a statement for many rows that returns none, and return how many it changed."""
        if not rows:
            return 0
        statement = self.compiler.named(name)
        changed = 0
        if self.dialect.takes_many:
            for piece in pieces(rows):
                self.cursor.execute(statement.sql, statement.arrange_many(piece))
                changed += int(self.cursor.rowcount)
        else:
            self.cursor.executemany(statement.sql, [statement.arrange(row) for row in rows])
            changed = int(self.cursor.rowcount)
        self.rows_changed += changed
        return changed

    def each(
        self, name: str, rows: Sequence[tuple[Any, ...]], make: Callable[[Iterable[Any]], Row]
    ) -> list[Row]:
        """Run a statement for many rows, at once or one by one, and return what it returns."""
        statement = self.compiler.named(name)
        found: list[Any] = []
        if self.dialect.takes_many:
            for piece in pieces(rows):
                self.cursor.execute(statement.sql, statement.arrange_many(piece))
                found += self.cursor.fetchall()
        else:
            execute, arrange = self.cursor.execute, statement.arrange
            for row in rows:
                execute(statement.sql, arrange(row))
                found += self.cursor.fetchall()
        self.rows_changed += len(found)  # some of them were only read; it must not be too few
        return [make(row) for row in found]

    def _fetch(self, statement: Compiled, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        self.cursor.execute(statement.sql, statement.arrange(values))
        return self.cursor.fetchall()  # type: ignore[no-any-return]


def pieces(rows: Sequence[Row]) -> Iterable[list[Row]]:
    """Split rows into lists that one statement takes."""
    remaining = iter(rows)
    while piece := list(islice(remaining, ROWS_PER_STATEMENT_MAX)):
        yield piece


def id_at(now_us: int) -> str:
    """Make an identifier that sorts by the time of its transaction."""
    return uuid7(now_us, random.getrandbits(62))
