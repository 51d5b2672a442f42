"""What a person does to a job: each job is locked and changed for itself."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ade.domain.errors import AdeError, NotFound
from ade.stages import transitions
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow


class JobAction(Protocol):
    """Name the job that a person wants to change."""

    @property
    def ref(self) -> JobRef:
        """Name the job."""
        ...


Action = TypeVar("Action", bound=JobAction)
Change = Callable[[Transaction, JobRow, Action], None]


def change_each(
    tx: Transaction, actions: Sequence[Action], change: Change[Action]
) -> list[JobRow | AdeError]:
    """Change each job, and return it as it is then, or why it could not be changed."""
    return [_change(tx, action, change) for action in actions]


def _change(tx: Transaction, action: Action, change: Change[Action]) -> JobRow | AdeError:
    try:
        job = _lock(tx, action.ref)
        change(tx, job, action)
        return tx.read_job(action.ref) or job
    except AdeError as error:
        return error


def _lock(tx: Transaction, ref: JobRef) -> JobRow:
    """Lock a job's lane, then the job: every stage locks in this order, so none deadlock."""
    seen = tx.read_job(ref)
    if seen is not None:
        lanes = transitions.lanes_of([seen])
        if lanes:
            tx.lock_lanes(lanes)
        locked = tx.lock_jobs([ref])
        if locked:
            return locked[0]
    raise NotFound("There is no such job in this workspace.")
