"""The statements about the workers that are running."""

from sqlalchemy import Insert, Update, delete, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import workers
from ade.store.sql.clauses import insert_values


def insert_worker(d: Dialect, p: Parameters) -> Insert:
    """Insert a worker that has just started."""
    return insert_values(p, workers, {name: p[name] for name in rows.WorkerRow._fields})


def refresh_worker(d: Dialect, p: Parameters) -> Update:
    """Note that a worker is still running, and which kinds it can run."""
    return (
        update(workers)
        .where(workers.c.name == p["name"])
        .values(
            kinds=p["kinds"],
            last_seen_at=p["last_seen_at"],
            slots=p["slots"],
            drains_at=p["drains_at"],
        )
    )


def delete_worker(d: Dialect, p: Parameters) -> Executable:
    """Forget a worker that has stopped."""
    return delete(workers).where(workers.c.name == p["name"])


def delete_silent_workers(d: Dialect, p: Parameters) -> Executable:
    """Forget workers that were not seen for long."""
    return delete(workers).where(workers.c.last_seen_at < p["last_seen_at"])


def list_workers(d: Dialect, p: Parameters) -> Executable:
    """List the workers that are running, by name."""
    return d.limited(
        select(*[workers.c[name] for name in rows.WorkerRow._fields]).order_by(workers.c.name),
        p["limit"],
    )
