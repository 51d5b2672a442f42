"""The statements on the archives of environments."""

from sqlalchemy import Delete, Insert, Update, delete, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import environment_archives as archives
from ade.store.sql.clauses import insert_values, same


def find_environment_archive(d: Dialect, p: Parameters) -> Executable:
    """Find the archive of an environment."""
    columns = [archives.c[name] for name in rows.EnvironmentArchive._fields]
    return select(*columns).where(same(archives, p, "environment"))


def insert_environment_archive(d: Dialect, p: Parameters) -> Insert:
    """Insert the archive of an environment that has none."""
    values = {name: p[name] for name in rows.EnvironmentArchive._fields}
    return insert_values(p, archives, values)


def archived_environments(d: Dialect, p: Parameters) -> Executable:
    """List the environments that have an archive."""
    return select(archives.c.environment)


def unused_archives(d: Dialect, p: Parameters) -> Executable:
    """List some environments that no host has used for long."""
    unused = select(archives.c.environment).where(archives.c.used_at < p["used_at"])
    return d.limited(unused.order_by(archives.c.used_at, archives.c.environment), p["limit"])


def use_environment_archive(d: Dialect, p: Parameters) -> Update:
    """Record that an environment was used now, unless that was recorded lately."""
    return (
        update(archives)
        .where(same(archives, p, "environment"), archives.c.used_at < p["at"])
        .values(used_at=p["used_at"])
    )


def delete_environment_archive(d: Dialect, p: Parameters) -> Delete:
    """Forget the archive of an environment, unless it was used meanwhile."""
    return delete(archives).where(
        same(archives, p, "environment"), archives.c.used_at < p["used_at"]
    )


def environment_archive_digests(d: Dialect, p: Parameters) -> Executable:
    """List the blobs that are archives of environments."""
    return select(archives.c.archive).distinct()
