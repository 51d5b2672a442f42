"""The statements about scalers, their blocks, and the work that waits for pilots."""

from sqlalchemy import (
    Insert,
    Update,
    case,
    delete,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    is_eligible,
    is_queued,
    is_running,
    jobs,
    queue_pauses,
    requests,
    scale_blocks,
    scalers,
    workers,
)
from ade.store.sql.clauses import insert_values, same, same_row

# What the scaler itself changes of a block; pilots note when they come and go.
CHANGED = ("name", "engine_id", "status", "detail", "started_at", "finished_at")


def list_scalers(d: Dialect, p: Parameters) -> Executable:
    """List the scalers by name."""
    return select(*[scalers.c[name] for name in rows.ScalerRow._fields]).order_by(scalers.c.name)


def find_scaler(d: Dialect, p: Parameters) -> Executable:
    """Find a scaler by its name."""
    return select(*[scalers.c[name] for name in rows.ScalerRow._fields]).where(
        same(scalers, p, "name")
    )


def insert_scaler(d: Dialect, p: Parameters) -> Insert:
    """Insert a scaler that runs for the first time."""
    return insert_values(p, scalers, {name: p[name] for name in rows.ScalerRow._fields})


def lead(d: Dialect, p: Parameters) -> Update:
    """Take or keep the lease of a scaler, unless another process holds it."""
    free = or_(
        scalers.c.owner.is_(None),
        scalers.c.owner == p["owner"],
        scalers.c.lease_expires_at < p["now"],
    )
    return (
        update(scalers)
        .where(same(scalers, p, "name"), free)
        .values(
            engine=p["engine"],
            owner=p["owner"],
            lease_expires_at=p["expires_at"],
            seen_at=p["now"],
        )
    )


def stop_leading(d: Dialect, p: Parameters) -> Update:
    """Give the lease of a scaler back."""
    return (
        update(scalers)
        .where(same(scalers, p, "name", "owner"))
        .values(owner=null(), lease_expires_at=null(), seen_at=p["now"])
    )


def record_scaler(d: Dialect, p: Parameters) -> Update:
    """Record what a scaler saw and did, if it holds the lease."""
    return update(scalers).where(same(scalers, p, "name", "owner")).values(state=p["state"])


def list_blocks(d: Dialect, p: Parameters) -> Executable:
    """List the blocks of a scaler, newest first."""
    found = select(*[scale_blocks.c[name] for name in rows.BlockRow._fields])
    newest = found.where(same(scale_blocks, p, "scaler")).order_by(
        scale_blocks.c.ordered_at.desc(), scale_blocks.c.name.desc()
    )
    return d.limited(newest, p["limit"])


def live_blocks(d: Dialect, p: Parameters) -> Executable:
    """List the blocks of a scaler that have not ended, newest first."""
    return (
        select(*[scale_blocks.c[name] for name in rows.BlockRow._fields])
        .where(same(scale_blocks, p, "scaler"), scale_blocks.c.finished_at.is_(None))
        .order_by(scale_blocks.c.ordered_at.desc(), scale_blocks.c.name.desc())
    )


def insert_block(d: Dialect, p: Parameters) -> Insert:
    """Insert a block that is about to be ordered, or one that an engine lists and no row names."""
    return insert_values(p, scale_blocks, {name: p[name] for name in rows.BlockRow._fields})


def change_block(d: Dialect, p: Parameters) -> Update:
    """Record what became of a block."""
    return (
        update(scale_blocks)
        .where(same(scale_blocks, p, "name"))
        .values(**{name: p[name] for name in CHANGED[1:]})
    )


def register_block(d: Dialect, p: Parameters) -> Update:
    """Note that the pilot of a block has come."""
    first = scale_blocks.c.name == p["block"], scale_blocks.c.registered_at.is_(None)
    return update(scale_blocks).where(*first).values(registered_at=p["now"])


def leave_block(d: Dialect, p: Parameters) -> Update:
    """Note that the pilot of a block has left."""
    block = select(workers.c.block).where(workers.c.name == p["name"]).scalar_subquery()
    registered = scale_blocks.c.name == block, scale_blocks.c.registered_at.is_not(None)
    return update(scale_blocks).where(*registered).values(left_at=p["now"])


def delete_blocks(d: Dialect, p: Parameters) -> Executable:
    """Delete the blocks of a scaler that ended long ago."""
    return delete(scale_blocks).where(
        same(scale_blocks, p, "scaler"), scale_blocks.c.finished_at < p["finished_at"]
    )


def backlog(d: Dialect, p: Parameters) -> Executable:
    """Count the jobs of a pool that a worker could take now, by kind and by whether they fit.

    Jobs that were set aside wait for a worker of their kind, and a pilot may be one. Those that an
    operator has paused wait for no worker.
    """
    of_workspace, of_kind = queue_pauses.c.workspace_id, queue_pauses.c.kind
    paused = exists().where(
        queue_pauses.c.worker.is_(None),
        or_(of_workspace.is_(None), of_workspace == jobs.c.workspace_id),
        or_(of_kind.is_(None), of_kind == requests.c.kind),
    )
    fits = case(
        (jobs.c.timeout_ms <= p["timeout_ms_max"], literal_column("1")), else_=literal_column("0")
    )
    # A subquery, because a parameter in GROUP BY would be another one than in the list.
    waiting = (
        select(requests.c.kind, fits.label("fits"), requests.c.submitted_at, jobs.c.timeout_ms)
        .select_from(jobs.join(requests, same_row()))
        .where(
            is_queued(jobs),
            jobs.c.pool == p["pool"],
            or_(is_eligible(jobs), jobs.c.needs_kind.is_not(None)),
            ~paused,
        )
        .subquery("waiting")
    )
    return select(
        waiting.c.kind,
        waiting.c.fits,
        func.count(),
        func.min(waiting.c.submitted_at),
        func.max(waiting.c.timeout_ms),
    ).group_by(waiting.c.kind, waiting.c.fits)


def count_by_owner(d: Dialect, p: Parameters) -> Executable:
    """Count the running jobs of a pool by the worker that holds them."""
    return (
        select(jobs.c.lease_owner, func.count())
        .where(is_running(jobs), jobs.c.pool == p["pool"])
        .group_by(jobs.c.lease_owner)
    )
