"""Let whoever holds a lease say how it goes: progress, log lines, notes.

A job's log is bounded. What still fits is kept, then one last `events.truncated` is written, and
what a worker says after it is dropped; changes of status are always written.
"""

import json
from dataclasses import dataclass
from typing import Any

from ade.domain.errors import LeaseLost
from ade.domain.events import EventType
from ade.domain.job import Status
from ade.stages.renew import lost
from ade.stages.rules import Rules
from ade.store.port import Transaction
from ade.store.rows import Append, Held, JobRef, NewEvent

# A longer event is replaced by its size.
DATA_BYTES_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """Hold what a worker has to say about a job that it holds."""

    held: Held
    events: tuple[tuple[EventType, dict[str, Any]], ...] = ()
    progress: dict[str, Any] | None = None


def report(rules: Rules, tx: Transaction, reports: list[Report]) -> list[bool | LeaseLost]:
    """Append what workers say; True if it was kept, False if the log is full."""
    return [_report(rules, tx, one) for one in reports]


def _report(rules: Rules, tx: Transaction, said: Report) -> bool | LeaseLost:
    lines = list(said.events)
    progress = None
    if said.progress is not None:
        progress = json.dumps(said.progress)
        lines.append((EventType.PROGRESS, said.progress))
    kept = _append(tx, said.held, lines, progress, rules.events_per_job_max)
    if kept:
        return True
    job = next(iter(tx.lock_jobs([JobRef(said.held.workspace_id, said.held.id)])), None)
    if job is None or job.fence != said.held.fence or job.status != Status.RUNNING:
        return lost(said.held)
    room = rules.events_per_job_max - job.event_seq
    if room >= 0:
        note = (EventType.TRUNCATED, {"limit": rules.events_per_job_max})
        _append(tx, said.held, [*lines[:room], note], None, rules.events_per_job_max + 1)
    return False


def _append(
    tx: Transaction,
    held: Held,
    lines: list[tuple[EventType, dict[str, Any]]],
    progress: str | None,
    seq_max: int,
) -> bool:
    moved = tx.append([Append(*held, len(lines), seq_max, progress)])
    if not moved:
        return False
    first = moved[0].event_seq - len(lines) + 1
    tx.insert_events(
        [
            NewEvent(held.workspace_id, held.id, first + i, tx.now_us, kind.value, _bounded(data))
            for i, (kind, data) in enumerate(lines)
        ]
    )
    tx.notify(held.id)
    return True


def _bounded(data: dict[str, Any]) -> str:
    text = json.dumps(data)
    if len(text) <= DATA_BYTES_MAX:
        return text
    return json.dumps({"truncated": True, "size_bytes": len(text)})
