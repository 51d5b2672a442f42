"""The archives of environments: one for each, kept in use by whoever uses it."""

from collections.abc import Callable

import pytest
from tests.databases import SqlDatabase

from ade.app.catalogue import Catalogue
from ade.app.environment_records import EnvironmentRecords
from ade.clock import ManualClock
from ade.store import schema
from ade.store.rows import EnvironmentArchive
from ade.store.session import Session

DAY = 24 * 3600


def archive(name: str, blob: str = "a") -> EnvironmentArchive:
    """Describe an archive; its times are the database's."""
    environment, digest = f"sha256:{name * 64}", f"sha256:{blob * 64}"
    return EnvironmentArchive(environment, digest, 10, 100, "CPython", "uv", 1, "a==1\n", 0, 0)


@pytest.fixture
def session(open_session: Callable[[], Session]) -> Session:
    """Open a database."""
    return open_session()


@pytest.fixture
def archives(session: Session) -> EnvironmentRecords:
    """Open the archives of a database."""
    return EnvironmentRecords(session)


async def test_the_first_archive_counts(archives: EnvironmentRecords, session: Session) -> None:
    first = await archives.add(archive("1"))
    assert first.created_at == first.used_at > 0
    assert await archives.add(archive("1", "b")) == first
    assert await archives.find(first.environment) == first
    assert await archives.find(archive("2").environment) is None
    assert await archives.archived() == {first.environment}
    assert first.archive in await Catalogue(session).digests_in_use()


async def test_what_nobody_uses_is_retired(
    archives: EnvironmentRecords, session: Session, clock: ManualClock
) -> None:
    used, unused = await archives.add(archive("1")), await archives.add(archive("2", "b"))
    clock.advance(2 * DAY)
    await archives.use({used.environment, archive("3").environment})
    assert await archives.retire_unused(DAY, "{}") == 1
    assert await archives.archived() == {used.environment}
    assert unused.archive not in await Catalogue(session).digests_in_use()


async def test_a_use_is_recorded_once_an_hour(
    archives: EnvironmentRecords, clock: ManualClock
) -> None:
    added = await archives.add(archive("1"))
    clock.advance(1800)
    await archives.use({added.environment})
    assert await archives.find(added.environment) == added
    clock.advance(1801)
    await archives.use({added.environment})
    found = await archives.find(added.environment)
    assert found is not None
    assert found.used_at == added.used_at + 3601 * 10**6


async def test_the_database_refuses_what_no_archive_is(sql_database: SqlDatabase) -> None:
    for change in ({"archive": "x"}, {"archive_bytes": 0}, {"used_at": 0, "created_at": 1}):
        row = archive("1")._asdict() | change
        with sql_database.connect() as connection, pytest.raises(Exception, match=r"(?i)check"):
            connection.execute(schema.environment_archives.insert().values(**row))
