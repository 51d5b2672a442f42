"""Connections to PostgreSQL have limits, and one that does not answer is given up and replaced."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url
from tests.proxy import Proxy, proxy_of, through

from ade.domain.errors import Unavailable
from ade.store import migrate
from ade.store.dialects import dialect_for
from ade.store.dialects.bounded import (
    DEADLINE_MARGIN_SECONDS,
    LIBPQ_DEFAULTS,
    BoundedConnection,
    libpq_url,
)
from ade.store.dialects.postgres import connect_for_migration
from ade.store.group_commit import OutcomeUnknown
from ade.store.reading import SqlReading
from ade.store.session import Session
from ade.store.transaction import SqlTransaction

TIMEOUT_SECONDS = 1.0
# What a caller waits for at most: the statement, a new connection, and the machine.
WAIT_SECONDS_MAX = 10.0


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxy_of(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def session(postgres_url: str, proxy: Proxy) -> Iterator[Session]:
    url = through(postgres_url, proxy)
    with closing(Session(url, timeout_seconds=TIMEOUT_SECONDS)) as session:
        session.write(lambda transaction, items: items, [None])
        yield session


def _limits(connection: BoundedConnection) -> dict[str, Any]:
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    shown = {name: connection.execute(f"SHOW {name}".encode()).fetchone() for name in names}
    return {name: row[0] for name, row in shown.items() if row is not None}


@pytest.mark.postgresql
def test_every_connection_has_limits(postgres_url: str) -> None:
    dialect, url = dialect_for(postgres_url)
    with closing(dialect.connect(url)) as connection:
        assert connection.info.get_parameters().items() >= LIBPQ_DEFAULTS.items()
        assert _limits(connection) == {
            "statement_timeout": "10s",
            "lock_timeout": "8s",
            "idle_in_transaction_session_timeout": "5s",
        }
    with closing(connect_for_migration(url)) as connection:
        assert connection.info.get_parameters().items() >= LIBPQ_DEFAULTS.items()
        found = _limits(connection)
        assert (found["statement_timeout"], found["lock_timeout"]) == ("1h", "1min")
    assert migrate.pending(postgres_url) == []


@pytest.mark.postgresql
def test_what_the_url_says_wins(postgres_url: str) -> None:
    said = {"keepalives_idle": "77", "options": "-c statement_timeout=1234"}
    dialect, url = dialect_for(postgres_url)
    with closing(dialect.connect(url.update_query_dict(said))) as connection:
        assert connection.info.get_parameters()["keepalives_idle"] == "77"
        found = _limits(connection)
        assert (found["statement_timeout"], found["lock_timeout"]) == ("1234ms", "8s")


@pytest.mark.parametrize(
    ("given", "hosts", "ports"),
    [
        ("postgresql://u:p%40@one,two:5433/db?sslmode=require", "one,two", "5432,5433"),
        ("postgresql+psycopg://u:p%40@one:1,[::1]:2/db?sslmode=require", "one,[::1]", "1,2"),
    ],
)
def test_a_url_may_name_several_hosts(given: str, hosts: str, ports: str) -> None:
    found = conninfo_to_dict(libpq_url(dialect_for(given)[1]))
    assert (found["host"], found["port"]) == (hosts, ports)
    assert (found["user"], found["password"], found["dbname"]) == ("u", "p@", "db")
    assert found["sslmode"] == "require"


def test_a_url_with_one_host_stays_as_it_is() -> None:
    for url in ("postgresql://u:p@one:1/db?a=1,2", "sqlite:////a,b/ade.db"):
        assert dialect_for(url)[1] == make_url(url)


@pytest.mark.postgresql
def test_a_slow_statement_costs_its_callers_and_not_the_connection(session: Session) -> None:
    def sleep(transaction: Any, items: list[None]) -> list[None]:
        transaction._sql.cursor.execute("SELECT pg_sleep(30)")
        return items

    writer = session.writer_pid
    began = time.monotonic()
    with pytest.raises(Unavailable, match="within 1 s"):
        session.write(sleep, [None])
    assert time.monotonic() - began < WAIT_SECONDS_MAX
    session.write(lambda transaction, items: items, [None])
    assert session.writer_pid == writer


@pytest.mark.postgresql
def test_silence_before_the_commit_makes_the_work_run_again(session: Session, proxy: Proxy) -> None:
    runs: list[int] = []

    def work(transaction: SqlTransaction) -> None:
        runs.append(1)
        if len(runs) == 1:
            proxy.silence_existing()
        transaction.directory.add_workspace("new", "New")

    began = time.monotonic()
    session.change(work)
    assert time.monotonic() - began < WAIT_SECONDS_MAX
    assert len(runs) == 2
    assert session.read(lambda reading: reading.directory.find_workspace("new")) is not None


@pytest.mark.postgresql
def test_silence_during_the_commit_is_an_unknown_outcome(session: Session, proxy: Proxy) -> None:
    runs: list[int] = []

    def work(transaction: Any, items: list[None]) -> list[None]:
        runs.append(1)
        proxy.silence_existing()
        return items

    began = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        session.write(work, [None])
    assert time.monotonic() - began < WAIT_SECONDS_MAX
    assert len(runs) == 1
    session.write(lambda transaction, items: items, [None])


@pytest.mark.postgresql
def test_a_read_is_done_again_on_a_new_connection(session: Session, proxy: Proxy) -> None:
    session.read(lambda reading: reading.workspace_ids())
    proxy.silence_existing()
    began = time.monotonic()
    assert session.read(lambda reading: reading.workspace_ids())
    assert time.monotonic() - began < WAIT_SECONDS_MAX


@pytest.mark.postgresql
def test_closing_does_not_wait_for_silent_connections(session: Session, proxy: Proxy) -> None:
    session.read(lambda reading: reading.workspace_ids())
    proxy.silence_all()
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < WAIT_SECONDS_MAX


@pytest.mark.postgresql
def test_a_check_of_the_whole_database_may_take_longer_than_a_statement(session: Session) -> None:
    """A large table takes longer to read than a statement of the queue may take."""

    def sleeps(seconds: float, *, freely: bool) -> None:
        def look(reading: SqlReading) -> None:
            if freely:
                assert reading.consistency.count("job_without_request") == 0
            reading._sql.cursor.execute(f"SELECT pg_sleep({seconds})")

        session.read(look)

    too_long = TIMEOUT_SECONDS + DEADLINE_MARGIN_SECONDS + 1
    sleeps(too_long, freely=True)
    with pytest.raises(Unavailable):
        sleeps(too_long, freely=False)
