"""Fixtures of the store's tests."""

from collections.abc import Callable, Iterator

import pytest
from tests.databases import Database, SqlDatabase
from tests.store.acts import Acts

from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.clock import ManualClock
from ade.kernel import Kernel
from ade.store.port import Store
from ade.store.session import Session


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
def open_session(sql_database: SqlDatabase, clock: ManualClock) -> Callable[[], Session]:
    """Open sessions on one database, as several processes would."""
    return lambda: sql_database.open(clock)


@pytest.fixture
def open_catalogue(open_session: Callable[[], Session]) -> Callable[[], Catalogue]:
    """Open catalogues on one database, as several processes would."""
    return lambda: Catalogue(open_session())


@pytest.fixture
def catalogue(open_catalogue: Callable[[], Catalogue]) -> Catalogue:
    """Open one catalogue."""
    return open_catalogue()


@pytest.fixture
def open_directory(open_session: Callable[[], Session]) -> Callable[[], Directory]:
    """Open directories on one database, as several processes would."""
    return lambda: Directory(open_session())


@pytest.fixture
def directory(open_directory: Callable[[], Directory]) -> Directory:
    """Open one directory."""
    return open_directory()
