"""`ade db copy`: every row of a SQLite database, on PostgreSQL, where work goes on."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.databases import WORKSPACE, SqlDatabase, empty_postgres
from tests.store.acts import Acts

from ade.app.database_check import check_database
from ade.clock import ManualClock
from ade.domain.errors import Conflict, InvalidRequest, Unavailable
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store import migrate, schema
from ade.store.copy_database import copy_database

pytestmark = [pytest.mark.slow, pytest.mark.postgresql]


@pytest.fixture
def source(sqlite_url: str) -> Iterator[SqlDatabase]:
    found = SqlDatabase("sqlite", sqlite_url)
    yield found
    found.close()


@pytest.fixture
def target(postgres_server: str) -> Iterator[SqlDatabase]:
    with empty_postgres(postgres_server) as url:
        found = SqlDatabase("postgresql", url)
        yield found
        found.close()


def acts_on(database: SqlDatabase, clock: ManualClock) -> Acts:
    return Acts(Kernel(database.open(clock), KernelSettings(queue_size=0)), clock)


def rows_of(database: SqlDatabase) -> dict[str, int]:
    with database.connect() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in schema.metadata.sorted_tables
        }


def test_work_goes_on_where_it_was_copied_to(
    source: SqlDatabase, target: SqlDatabase, clock: ManualClock
) -> None:
    before = acts_on(source, clock)
    done, running, *_ = (before.submit(payload=f'{{"n": "ä{n}"}}') for n in range(4))
    before.submit(target_id="lane")
    before.submit(target_id="lane", payload='{"after": 1}')
    leases = before.claim(limit=2)
    before.succeed(leases[0])
    source.close()

    told: dict[str, int] = {}
    copied = copy_database(source.url, target.url, told.__setitem__)

    assert copied == told == rows_of(source) == rows_of(target)
    assert copied["jobs"] == 6
    after = acts_on(target, clock)
    store = target.open(clock)
    assert list(check_database(store)) == []
    statuses = {job.id: job.status for job in after.everything()}
    assert statuses[done.id] == "succeeded"
    assert statuses[running.id] == "running"
    assert len(after.claim(limit=10)) == 3  # the second of the lane waits
    after.succeed(leases[1])  # the fence of a lease is the same
    after.check()


def test_a_database_that_is_used_is_left_alone(source: SqlDatabase, postgres_url: str) -> None:
    with pytest.raises(Conflict, match="workspaces already"):
        copy_database(source.url, postgres_url)


def test_a_copy_that_fails_leaves_nothing(
    source: SqlDatabase, target: SqlDatabase, clock: ManualClock
) -> None:
    job = acts_on(source, clock).submit()
    source.close()
    with sqlite3.connect(source.url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE requests SET submitted_by = 'a' || char(0) || 'b'")
    connection.close()
    with pytest.raises(Unavailable, match="table requests cannot be copied"):
        copy_database(source.url, target.url)
    assert rows_of(target)["workspaces"] == 0
    assert job.workspace_id == WORKSPACE


def test_only_from_sqlite_to_postgresql(
    source: SqlDatabase, postgres_url: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match="target must be"):
        copy_database(source.url, f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(InvalidRequest, match="not a SQLite"):
        copy_database(postgres_url, postgres_url)
    with pytest.raises(Unavailable, match="no database"):
        copy_database(f"sqlite:///{tmp_path}/other.db", postgres_url)


def test_a_source_that_is_behind(postgres_url: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("CREATE TABLE something (x)")
    connection.close()
    with pytest.raises(Unavailable, match="ade db upgrade"):
        copy_database(f"sqlite:///{tmp_path}/old.db", postgres_url)
    assert migrate.pending(postgres_url) == []
