"""Keep jobs from starting until an operator lets them: of a workspace, of a kind, on a worker.

Every claim reads in its own transaction what is paused, so a pause holds in all processes as soon
as it is recorded. Jobs that run already run on, and new ones are still accepted. A job that starts
in the same instant may have been claimed by a transaction that began before the pause.

A claim never looks at a paused workspace. Jobs of a paused kind are set aside when a claim meets
them, as are those of kinds that the claimer cannot run (`ade.stages.claim`), and cost the others
nothing; they are recalled once the pause has ended.

A worker that is paused drains: its claims bring nothing, and what it runs goes on to its end. The
process stays, and works again when the pause ends. A pause of a worker that has gone is deleted by
a sweep.
"""

from dataclasses import dataclass

from ade.domain.errors import AdeError, Conflict, NotFound
from ade.domain.events import work_topic
from ade.domain.job import AGENT_POOL, LOCAL_POOL
from ade.domain.queue_pause import PauseScope
from ade.stages.kernel_settings import KernelSettings
from ade.stages.workers import WORKERS_LISTED_MAX
from ade.store.port import Reading, Transaction
from ade.store.rows import QueuePauseRow

QUEUE_PAUSES_MAX = 1000


@dataclass(frozen=True, slots=True)
class PauseQueue:
    """Ask that the jobs of a scope do not start."""

    scope: PauseScope
    by: str
    reason: str


def pause_queue(
    settings: KernelSettings, tx: Transaction, requests: list[PauseQueue]
) -> list[QueuePauseRow | AdeError]:
    """Pause scopes; one that is paused already gets the new reason."""
    return [_pause(tx, request) for request in requests]


def _pause(tx: Transaction, request: PauseQueue) -> QueuePauseRow | AdeError:
    scope = request.scope
    known = {row.scope: row for row in tx.queue_pauses.list_all()}
    if scope.key not in known and len(known) >= QUEUE_PAUSES_MAX:
        return Conflict(f"{QUEUE_PAUSES_MAX:,} pauses are the most at once; resume some first.")
    if scope.worker is not None and not _is_known(tx, scope.worker):
        return NotFound("No such worker or agent is known.")
    since = known[scope.key].paused_at if scope.key in known else tx.now_us
    named = (scope.key, scope.workspace_id, scope.kind, scope.worker)
    row = QueuePauseRow(*named, request.reason, request.by, since)
    tx.queue_pauses.put(row)
    return row


def _is_known(tx: Transaction, worker: str) -> bool:
    names = {row.name for row in tx.list_workers(WORKERS_LISTED_MAX)}
    return worker in names or worker in {host.name for host in tx.agent_jobs.hosts()}


def resume_queue(
    settings: KernelSettings, tx: Transaction, scopes: list[PauseScope]
) -> list[AdeError | None]:
    """End pauses, and tell the claimers that there is work."""
    return [_resume(tx, scope) for scope in scopes]


def _resume(tx: Transaction, scope: PauseScope) -> AdeError | None:
    if not tx.queue_pauses.delete(scope.key):
        return NotFound("This is not paused.")
    tx.notify(work_topic(LOCAL_POOL), work_topic(AGENT_POOL))
    return None


def paused_scopes(reading: Reading) -> list[PauseScope]:
    """Read what is paused."""
    rows = reading.queue_pauses.list_all()
    return [PauseScope(row.workspace_id, row.kind, row.worker) for row in rows]
