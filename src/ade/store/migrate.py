"""Bring a database to the schema that this ADE expects.

Several processes may start at once on one database: each takes a lock, looks again, and applies
what is still missing, all in one transaction. There is no way back: a database that a newer ADE has
changed is refused, and a backup is what returns to an older one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.pool import NullPool

from ade.domain.errors import Unavailable
from ade.store.dialects import dialect_for

HEAD = "head"
LOCK_SECONDS_MAX = 60
_LOCK = {
    "postgresql": "SELECT pg_advisory_xact_lock(hashtextextended('ade/migrate', 0))",
    "mssql": (
        "EXEC sp_getapplock @Resource = 'ade/migrate', @LockMode = 'Exclusive',"
        f" @LockOwner = 'Transaction', @LockTimeout = {LOCK_SECONDS_MAX * 1000}"
    ),
}


def upgrade(url: str) -> list[str]:
    """Apply every revision that the database lacks, and return them; none if it is current.

    The file of a SQLite database is made, with its folder, if it is not there.
    """
    applied: list[str] = []

    def note(*, step: Any, **_: Any) -> None:
        applied.append(step.up_revision_id)

    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
        Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
    with _locked(parsed) as connection:
        if _missing(connection):
            config = _config()
            config.attributes.update(connection=connection, on_version_apply=note)
            command.upgrade(config, HEAD)
    return applied


def pending(url: str) -> list[str]:
    """Return the revisions that the database lacks, oldest first."""
    parsed = _parsed(url)
    if _has_no_file(parsed):
        return _all_revisions()
    with _open(parsed) as connection:
        return _missing(connection)


def current(url: str) -> str | None:
    """Return the revision that the database is at; None if it is empty."""
    parsed = _parsed(url)
    if _has_no_file(parsed):
        return None
    with _open(parsed) as connection:
        return _current(connection)


def is_known(revision: str) -> bool:
    """Tell whether this ADE knows a revision, and so can bring it up to date."""
    return revision in _all_revisions()


def as_sql(dialect_name: str) -> str:
    """Return the statements of every revision for a database, to be applied by hand."""
    written = StringIO()
    config = _config(output_buffer=written)
    config.attributes["dialect_name"] = dialect_name
    command.upgrade(config, HEAD, sql=True)
    return written.getvalue()


def _config(output_buffer: StringIO | None = None) -> Config:
    config = Config(output_buffer=output_buffer)
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def _parsed(url: str) -> URL:
    parsed = dialect_for(url)[1]
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "mssql":
        return parsed.set(drivername="mssql+mssqlpython")
    return parsed


def _has_no_file(url: URL) -> bool:
    """Tell whether looking would create an empty SQLite file."""
    return url.get_backend_name() == "sqlite" and not Path(url.database or "").exists()


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _all_revisions() -> list[str]:
    script = ScriptDirectory.from_config(_config())
    return [revision.revision for revision in script.walk_revisions()][::-1]


def _missing(connection: Connection) -> list[str]:
    revisions, at = _all_revisions(), _current(connection)
    if at is None:
        return revisions
    if at not in revisions:
        raise Unavailable(
            f"The database is at revision {at}, which this version of ADE does not know:"
            " a newer one has changed it. Start that one, or restore a backup."
        )
    return revisions[revisions.index(at) + 1 :]


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "postgresql":
        return create_engine(url, poolclass=NullPool)
    from ade.store.dialects.postgres import connect_for_migration

    return create_engine(url, poolclass=NullPool, creator=lambda: connect_for_migration(url))


@contextmanager
def _open(url: URL) -> Iterator[Connection]:
    engine = _engine(url)
    if engine.dialect.name == "sqlite":
        _begin_for_real(engine)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _locked(url: URL) -> Iterator[Connection]:
    """Open one transaction that no other upgrade runs beside."""
    with _open(url) as connection, connection.begin():
        if lock := _LOCK.get(connection.dialect.name):
            connection.execute(text(lock))
        yield connection


def _begin_for_real(engine: Any) -> None:
    """Have SQLite's driver leave transactions alone: by itself it begins none before a CREATE."""

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS_MAX * 1000}")

    @event.listens_for(engine, "begin")
    def _began(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
