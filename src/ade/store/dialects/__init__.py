"""Say what differs between the databases, one small file for each."""

import re

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ade.store.dialects.dialect import Dialect

POSTGRES_PORT = "5432"
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d+))?")
SEVERAL_HOSTS = re.compile(
    r"(?P<scheme>postgres[^:]*)://(?P<user>[^@/]*@)?(?P<hosts>[^/?]*,[^/?]*)"
)


def _with_hosts_in_query(url: str) -> str:
    """Move the hosts of `postgresql://host1,host2:5433/` to where SQLAlchemy allows several."""
    found = SEVERAL_HOSTS.match(url)
    if found is None:
        return url
    pairs = [_HOST.fullmatch(host) for host in found["hosts"].split(",")]
    hosts = ",".join(pair["host"] if pair else "" for pair in pairs)
    ports = ",".join(pair["port"] or POSTGRES_PORT if pair else "" for pair in pairs)
    rest = url[found.end() :]
    more = f"{'&' if '?' in rest else '?'}host={hosts}&port={ports}"
    return f"{found['scheme']}://{found['user'] or ''}{rest or '/'}{more}"


def dialect_for(url: str) -> tuple[Dialect, URL]:
    """Choose the dialect that a database URL asks for."""
    try:
        parsed = make_url(_with_hosts_in_query(url))
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
