"""Say what differs between the databases, one small file for each."""

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ade.store.dialects.dialect import Dialect


def dialect_for(url: str) -> tuple[Dialect, URL]:
    """Choose the dialect that a database URL asks for."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ValueError("ADE_DATABASE_URL is not a database URL") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        from ade.store.dialects.sqlite import SqliteDialect

        return SqliteDialect(), parsed
    if backend in ("postgresql", "postgres"):
        from ade.store.dialects.postgres import PostgresDialect

        return PostgresDialect(), parsed
    if backend == "mssql":
        from ade.store.dialects.mssql import MssqlDialect

        return MssqlDialect(), parsed
    raise ValueError(f"no dialect for {backend!r}: use sqlite, postgresql or mssql")
