"""The statements about what operators have paused."""

from sqlalchemy import Insert, Update, delete, exists, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import hosts, queue_pauses, workers
from ade.store.sql.clauses import insert_values, same


def list_queue_pauses(d: Dialect, p: Parameters) -> Executable:
    """List what is paused."""
    columns = [queue_pauses.c[name] for name in rows.QueuePauseRow._fields]
    return select(*columns).order_by(queue_pauses.c.scope)


def insert_queue_pause(d: Dialect, p: Parameters) -> Insert:
    """Pause what was not paused."""
    values = {name: p[name] for name in rows.QueuePauseRow._fields}
    return insert_values(p, queue_pauses, values)


def change_queue_pause(d: Dialect, p: Parameters) -> Update:
    """Say why something stays paused, and by whom."""
    return (
        update(queue_pauses)
        .where(same(queue_pauses, p, "scope"))
        .values(reason=p["reason"], paused_by=p["paused_by"])
    )


def delete_queue_pause(d: Dialect, p: Parameters) -> Executable:
    """End a pause."""
    return delete(queue_pauses).where(same(queue_pauses, p, "scope"))


def delete_pauses_of_gone_workers(d: Dialect, p: Parameters) -> Executable:
    """Forget the pauses of workers and agents that are not known any more."""
    worker = queue_pauses.c.worker
    return delete(queue_pauses).where(
        worker.is_not(None),
        ~exists().where(workers.c.name == worker),
        ~exists().where(hosts.c.name == worker),
    )
