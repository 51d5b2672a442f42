"""What a person does to a job: one at a time, locked, each answered for itself."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ade.domain.errors import AdeError, NotFound
from ade.stages import transitions
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow


class Asked(Protocol):
    """Name the job that someone asks about."""

    @property
    def ref(self) -> JobRef:
        """Name the job."""
        ...


Ask = TypeVar("Ask", bound=Asked)
Change = Callable[[Transaction, JobRow, Ask], None]


def change_each(
    tx: Transaction, asks: Sequence[Ask], change: Change[Ask]
) -> list[JobRow | AdeError]:
    """Change each job, and return it as it is then, or why it could not be changed."""
    return [_changed(tx, ask, change) for ask in asks]


def _changed(tx: Transaction, ask: Ask, change: Change[Ask]) -> JobRow | AdeError:
    try:
        job = _lock(tx, ask.ref)
        change(tx, job, ask)
        return tx.read_job(ask.ref) or job
    except AdeError as error:
        return error


def _lock(tx: Transaction, ref: JobRef) -> JobRow:
    """Lock a job's lane, then the job: one order for all, so nobody deadlocks."""
    seen = tx.read_job(ref)
    if seen is not None:
        lanes = transitions.lanes_of([seen])
        if lanes:
            tx.lock_lanes(lanes)
        locked = tx.lock_jobs([ref])
        if locked:
            return locked[0]
    raise NotFound("There is no such job in this workspace.")
