"""Fixtures of the store's tests."""

from collections.abc import Callable, Iterator

import pytest
from tests.databases import Database, SqlDatabase
from tests.store.acts import Acts

from ade.clock import ManualClock
from ade.kernel import Kernel
from ade.store.library import Library
from ade.store.store import Store


@pytest.fixture
def acts(kernel: Kernel, clock: ManualClock) -> Iterator[Acts]:
    """Act on the kernel under test; afterwards everything in it must make sense."""
    doing = Acts(kernel, clock)
    yield doing
    doing.check()


@pytest.fixture
def workspaces(database: Database, store: Store) -> Callable[[int], list[str]]:
    """Make more workspaces, and return their identifiers in order."""

    def make(count: int) -> list[str]:
        made = [f"0198b000-0000-7000-8000-{number:012d}" for number in range(count)]
        for number, id_ in enumerate(made):
            database.insert("workspaces", id=id_, slug=f"more-{number}", name="", created_at=0)
        return made

    return make


@pytest.fixture
def open_library(sql_database: SqlDatabase, clock: ManualClock) -> Iterator[Callable[[], Library]]:
    """Open libraries on one database, as several processes would."""
    opened: list[Library] = []

    def open_one() -> Library:
        opened.append(Library(sql_database.url, clock=clock))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def library(open_library: Callable[[], Library]) -> Library:
    """Open one library."""
    return open_library()
