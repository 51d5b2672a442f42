"""Fixtures for tests that need a store.

    sqlite_url, postgres_url   a fresh, migrated database with the workspace `WORKSPACE` in it
    database_url               each of them in turn
    database                   each kind of store in turn, the in-memory one too: `.open(clock)`
                               opens a store, `.insert` writes a row past it
    clock                      a ManualClock
    store                      `database.open(clock)`
    kernel                     a Kernel over it, with no limit on the queue

On the fast tier (`ADE_TEST_TIER=fast`) what needs a database server is left out, and so are files
that are marked as slow: they take seconds. The last lines of the run say so. SQL Server takes part
only where `ADE_TEST_MSSQL_URL` names one.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests import databases
from tests.databases import Database, MemoryDatabase, SqlDatabase

from ade.clock import ManualClock
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Store

FAST = os.environ.get("ADE_TEST_TIER") == "fast"
LEFT_OUT: dict[str, str] = {}
if FAST:
    LEFT_OUT["postgresql"] = "PostgreSQL (this is the fast tier)"
    LEFT_OUT["slow"] = "files marked as slow (this is the fast tier)"
if FAST or not os.environ.get("ADE_TEST_MSSQL_URL"):
    LEFT_OUT["mssql"] = "SQL Server (ADE_TEST_MSSQL_URL names none, or this is the fast tier)"

settings.register_profile(
    "fast", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "all", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fast" if FAST else "all")

ON_POSTGRES = pytest.param("postgresql", marks=pytest.mark.postgresql)
ON_MSSQL = pytest.param("mssql", marks=pytest.mark.mssql)


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks of tests that are not run everywhere."""
    config.addinivalue_line("markers", "postgresql: needs a PostgreSQL server")
    config.addinivalue_line("markers", "mssql: needs ADE_TEST_MSSQL_URL")
    config.addinivalue_line("markers", "slow: takes seconds, and is left out on the fast tier")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark by fixture what needs a server, and leave out what is not for this tier."""
    for item in items:
        if "postgres_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgresql)
    left_out = [item for item in items if any(item.get_closest_marker(s) for s in LEFT_OUT)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was left out: a green run is no proof of it."""
    for reason in LEFT_OUT.values():
        terminalreporter.write_line(f"left out: {reason}")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the SQLite file that tests copy."""
    return databases.sqlite_template(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgres_server(testrun_uid: str) -> Iterator[str]:
    """Start the PostgreSQL server of this test run, or find the one that is given."""
    with databases.postgres_server(testrun_uid) as url:
        yield url


@pytest.fixture(scope="session")
def mssql_server(worker_id: str) -> str:
    """Name the SQL Server database of this test process."""
    return databases.mssql_database(worker_id)


@pytest.fixture
def sqlite_url(sqlite_template: Path) -> Iterator[str]:
    """Give a fresh, migrated SQLite database."""
    with databases.fresh_sqlite(sqlite_template) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Give a fresh, migrated PostgreSQL database."""
    with databases.fresh_postgres(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def database_url(request: pytest.FixtureRequest) -> str:
    """Give a fresh, migrated database of each kind that can be started here."""
    url: str = request.getfixturevalue(_url_fixture(request.param))
    return url


@pytest.fixture(params=["memory", "sqlite", ON_POSTGRES, ON_MSSQL])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Give a fresh database of each kind."""
    found = _database(request, request.param)
    yield found
    found.close()


@pytest.fixture(params=["sqlite", ON_POSTGRES, ON_MSSQL])
def sql_database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """Give a fresh SQL database of each kind."""
    found = _database(request, request.param)
    yield found
    found.close()


def _url_fixture(name: str) -> str:
    return {"sqlite": "sqlite_url", "postgresql": "postgres_url", "mssql": "mssql_server"}[name]


def _database(request: pytest.FixtureRequest, name: str) -> Any:
    if name == "memory":
        return MemoryDatabase()
    found = SqlDatabase(name, request.getfixturevalue(_url_fixture(name)))
    if name == "mssql":
        found.wipe()
    return found


@pytest.fixture
def clock() -> ManualClock:
    """Give a clock that stands still until a test advances it."""
    return ManualClock()


@pytest.fixture
def store(database: Database, clock: ManualClock) -> Store:
    """Open the store under test."""
    return database.open(clock)


@pytest.fixture
def kernel(store: Store) -> Kernel:
    """Give a kernel without a limit on its queue."""
    return Kernel(store, KernelSettings(queue_size=0))
