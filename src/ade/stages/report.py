"""Append what the holder of a lease reports: progress, log lines, notes.

A job's log is bounded. What still fits is kept, then one last `events.truncated` is written, and
later reports are dropped. Changes of status are always written.
"""

import json
from dataclasses import dataclass
from typing import Any

from ade.domain.errors import LeaseLost
from ade.domain.events import EventType
from ade.domain.job import Status
from ade.stages.kernel_settings import KernelSettings
from ade.stages.renew import lease_lost
from ade.store.port import Transaction
from ade.store.rows import Append, JobRef, LeaseRef, NewEvent

# A longer event is replaced by its size.
DATA_BYTES_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """Hold what a worker reports about a job whose lease it holds."""

    lease: LeaseRef
    events: tuple[tuple[EventType, dict[str, Any]], ...] = ()
    progress: dict[str, Any] | None = None


def report(
    settings: KernelSettings, tx: Transaction, reports: list[AttemptReport]
) -> list[bool | LeaseLost]:
    """Append what workers report; True if it was kept, False if the log is full."""
    return [_report(settings, tx, one) for one in reports]


def _report(settings: KernelSettings, tx: Transaction, reported: AttemptReport) -> bool | LeaseLost:
    lines = list(reported.events)
    progress = None
    if reported.progress is not None:
        progress = json.dumps(reported.progress)
        lines.append((EventType.PROGRESS, reported.progress))
    lease, limit = reported.lease, settings.events_per_job_max
    if _append(tx, lease, lines, progress, limit):
        return True
    job = next(iter(tx.lock_jobs([JobRef(lease.workspace_id, lease.id)])), None)
    if job is None or job.fence != lease.fence or job.status != Status.RUNNING:
        return lease_lost(lease)
    room = limit - job.event_seq
    if room >= 0:
        truncated = (EventType.TRUNCATED, {"limit": limit})
        _append(tx, lease, [*lines[:room], truncated], None, limit + 1)
    return False


def _append(
    tx: Transaction,
    lease: LeaseRef,
    lines: list[tuple[EventType, dict[str, Any]]],
    progress: str | None,
    seq_max: int,
) -> bool:
    moved = tx.append([Append(*lease, len(lines), seq_max, progress)])
    if not moved:
        return False
    first = moved[0].event_seq - len(lines) + 1
    tx.insert_events(
        [
            NewEvent(lease.workspace_id, lease.id, first + i, tx.now_us, kind.value, _bounded(data))
            for i, (kind, data) in enumerate(lines)
        ]
    )
    tx.notify(lease.id)
    return True


def _bounded(data: dict[str, Any]) -> str:
    text = json.dumps(data)
    if len(text) <= DATA_BYTES_MAX:
        return text
    return json.dumps({"truncated": True, "size_bytes": len(text)})
