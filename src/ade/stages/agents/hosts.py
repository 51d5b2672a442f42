"""Note which hosts were heard of, and keep the jobs alive that their heartbeats list as active.

Heartbeats come often and change nothing, so servers gather them and note them together.
"""

from dataclasses import dataclass

from ade.domain.units import MICROSECONDS
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import HostRow, Renewal

# A host that was not heard of for so long is forgotten.
FORGOTTEN_AFTER_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class HostNote:
    """Say when a host was heard of, in seconds before now, and what its heartbeat said."""

    name: str
    seen_seconds_ago: float
    asked_seconds_ago: float | None = None
    beat_seconds_ago: float | None = None
    info: str = "{}"
    active_jobs: frozenset[str] = frozenset()


def note_hosts(
    settings: KernelSettings, tx: Transaction, calls: list[list[HostNote]]
) -> list[None]:
    """Note all hosts of these calls."""
    notes = [note for notes in calls for note in notes]
    tx.agent_jobs.put_hosts([_row(note, tx.now_us) for note in notes])
    active = {note.name: note.active_jobs for note in notes if note.active_jobs}
    if active:
        expires_at = settings.staleness.status_expires_at(tx.now_us)
        kept = [
            Renewal(job.workspace_id, job.id, job.fence, expires_at)
            for job in tx.agent_jobs.held()
            if job.id in active.get(job.lease_owner, ())
        ]
        tx.renew(kept)
    return [None for _ in calls]


def forget_hosts(tx: Transaction) -> int:
    """Forget hosts that were not heard of for long."""
    return tx.agent_jobs.delete_silent_hosts(
        tx.now_us - int(FORGOTTEN_AFTER_SECONDS * MICROSECONDS)
    )


def _row(note: HostNote, now_us: int) -> HostRow:
    def at(seconds_ago: float | None) -> int | None:
        return None if seconds_ago is None else now_us - int(seconds_ago * MICROSECONDS)

    seen_at = at(note.seen_seconds_ago) or now_us
    return HostRow(
        note.name,
        seen_at,
        seen_at,
        at(note.asked_seconds_ago),
        at(note.beat_seconds_ago),
        note.info,
    )
