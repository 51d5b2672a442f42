"""Fixtures for real processes: each test has its own data folder."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.system.server import Start, starting


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `ade` processes on the embedded database."""
    with starting(tmp_path) as start:
        yield start


@pytest.fixture
def start_on_postgres(tmp_path: Path, postgres_url: str) -> Iterator[Start]:
    """Start `ade` processes that share a PostgreSQL database."""
    with starting(tmp_path, ADE_DATABASE_URL=postgres_url) as start:
        yield start


@pytest.fixture
def start_on_empty_postgres(start_on_postgres: Start, postgres_url: str) -> Start:
    """Start `ade` processes on a PostgreSQL database in which there is nothing yet."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return start_on_postgres
