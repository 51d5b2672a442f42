"""Copy a whole database to a file while it is used, and bring such a file back.

The model. The file is the state of one moment: what was committed before it, and nothing else.

    SQLite       one read transaction of SQLite's online backup; writers go on, and the write-ahead
                 log grows until it is done
    PostgreSQL   `pg_dump` of an exported snapshot; the list of blobs is read in the same snapshot
    SQL Server   not supported: its own BACKUP DATABASE is

    failure                           what happens
    --------------------------------  ----------------------------------------------------------
    the disk is full                  StorageFull, before anything is written where it can be known
    pg_dump or pg_restore is missing  Unavailable, which says what to install
    pg_dump is older than the server  Unavailable, with what pg_dump says
    the source file is damaged        Unavailable: a copy of damage is no backup
    the database is not empty         Conflict: a restore never overwrites
"""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import make_url
from sqlalchemy.engine import URL

from ade.domain.errors import Conflict, StorageFull, Unavailable
from ade.domain.units import MIB
from ade.store import migrate
from ade.store.dialects import dialect_for
from ade.store.dialects.bounded import libpq_url
from ade.store.reading import SqlReading
from ade.store.session import Session

SQLITE_FILE, POSTGRES_FILE = "ade.sqlite", "ade.dump"
FILE_OF = {"sqlite": SQLITE_FILE, "postgresql": POSTGRES_FILE}
# What stays free on the disk of a copy.
SPARE_BYTES = 64 * MIB
_NO_BACKUP = (
    "ADE copies SQLite and PostgreSQL databases only. Use BACKUP DATABASE of SQL Server for this"
    " one, then copy the blobs."
)


class DatabaseCopy(NamedTuple):
    """Describe a copy: its kind and revision, and the blobs that its rows refer to."""

    kind: str
    revision: str
    digests: set[str]


def kind_of(url: str) -> str:
    """Return the kind of a database that can be copied, or raise Unavailable."""
    name = dialect_for(url)[0].name
    if name not in FILE_OF:
        raise Unavailable(_NO_BACKUP)
    return name


def refuse_unusable(url: str) -> None:
    """Raise Unavailable if a database cannot be copied as it is, before anything is written."""
    if kind_of(url) == "sqlite" and not _file_of(url).exists():
        raise Unavailable(f"There is no database at {_file_of(url)}: see ADE_STORAGE_DATA_DIR.")
    if kind_of(url) == "postgresql":
        _program("pg_dump")
    if migrate.current(url) is None:
        raise Unavailable("The database has no tables of ADE: there is nothing to back up yet.")
    if pending := migrate.pending(url):
        raise Unavailable(
            f"The database lacks revision {pending[0]} of the schema. Back it up with the version"
            " of ADE that uses it, or run `ade db upgrade` first."
        )


def digests_in_use(url: str) -> set[str]:
    """List the blobs that the rows of a database refer to now."""
    session = Session(url)
    try:
        return session.read(lambda reading: reading.usage.digests_in_use())
    finally:
        session.close()


def copy_to_folder(url: str, folder: Path) -> DatabaseCopy:
    """Write a consistent copy of a database into a folder, beside those who use it."""
    kind = kind_of(url)
    if kind == "sqlite":
        return _copy_sqlite(_file_of(url), folder / SQLITE_FILE)
    return _dump_postgres(url, folder / POSTGRES_FILE)


def refuse_unless_empty(url: str) -> None:
    """Raise Conflict if a database has tables of ADE."""
    if kind_of(url) == "sqlite":
        path = _file_of(url)
        used = [p for p in (path, Path(f"{path}-wal")) if p.exists() and p.stat().st_size]
        if used:
            raise Conflict(
                f"{used[0]} exists. A restore overwrites nothing: move it away, or set"
                " ADE_DATABASE_URL or ADE_STORAGE_DATA_DIR to another place."
            )
    elif (revision := migrate.current(url)) is not None:
        raise Conflict(
            f"The database has the tables of ADE already (revision {revision}). A restore"
            " overwrites nothing: create an empty database and name it in ADE_DATABASE_URL."
        )


def restore_from_file(url: str, source: Path) -> None:
    """Bring a copy back into a database that does not exist yet or is empty."""
    refuse_unless_empty(url)
    if kind_of(url) == "sqlite":
        _restore_sqlite(source, _file_of(url))
    else:
        _restore_postgres(url, source)


# --- SQLite ---------------------------------------------------------------------------------------


def _file_of(url: str) -> Path:
    return Path(make_url(url).database or "").absolute()


def _copy_sqlite(source: Path, target: Path) -> DatabaseCopy:
    _refuse_without_room(source, target)
    try:
        with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
            live.backup(copy)  # all pages in one step: one snapshot
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        if "full" in str(error):
            raise StorageFull(f"The disk with {target.parent} is full.") from None
        raise Unavailable(f"{source} cannot be copied: {error}") from None
    if found != "ok":
        raise Unavailable(f"{source} is damaged: {found}. Restore an earlier backup.")
    described = _describe_sqlite(target)
    sync_path(target)
    return described


def _describe_sqlite(path: Path) -> DatabaseCopy:
    url = f"sqlite:///{path}"
    revision = migrate.current(url)
    digests = digests_in_use(url)
    with closing(sqlite3.connect(path)) as copy:  # a session turned the log on
        copy.execute("PRAGMA journal_mode = DELETE")
    return DatabaseCopy("sqlite", str(revision), digests)


def _refuse_without_room(source: Path, target: Path) -> None:
    wanted = source.stat().st_size + SPARE_BYTES
    free = shutil.disk_usage(target.parent).free
    if free < wanted:
        raise StorageFull(
            f"The disk with {target.parent} has {free // MIB} MiB free; the copy of the database"
            f" needs {wanted // MIB} MiB."
        )


def _restore_sqlite(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_without_room(source, target)
    unfinished = target.with_name(f"{target.name}.restoring")
    try:
        shutil.copyfile(source, unfinished)
        unfinished.chmod(0o600)
        sync_path(unfinished)
        target.unlink(missing_ok=True)  # it is empty, or `refuse_unless_empty` had refused
        unfinished.rename(target)
        sync_path(target.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def sync_path(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- PostgreSQL -----------------------------------------------------------------------------------


def _dump_postgres(url: str, target: Path) -> DatabaseCopy:
    program = _program("pg_dump")

    def dump(reading: SqlReading) -> set[str]:
        snapshot = reading.export_snapshot()
        arguments = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"]
        _run(url, [program, *arguments, f"--file={target}"])
        return reading.usage.digests_in_use()

    session = Session(url)
    try:
        digests = session.read(dump)
    finally:
        session.close()
    sync_path(target)
    return DatabaseCopy("postgresql", str(migrate.current(url)), digests)


def _restore_postgres(url: str, source: Path) -> None:
    # In one transaction: a restore that fails leaves the database empty.
    arguments = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
    _run(url, [_program("pg_restore"), *arguments, str(source)])


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(
            f"{name} is not on the PATH. Install the client programs of PostgreSQL, of the"
            " server's version or later (on Debian: postgresql-client)."
        )
    return found


def _run(url: str, command: list[str]) -> None:
    """Run a program of PostgreSQL on a database; the password is passed by the environment."""
    parsed: URL = dialect_for(url)[1]
    environment = dict(os.environ)
    if parsed.password:
        environment["PGPASSWORD"] = str(parsed.password)
    database = libpq_url(parsed._replace(password=None))
    done = subprocess.run(
        [*command, f"--dbname={database}"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[:500]
        if "No space left on device" in said:
            raise StorageFull(f"The disk is full: {said}")
        raise Unavailable(f"{Path(command[0]).name} failed: {said}")
