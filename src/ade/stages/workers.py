"""Note which workers are running, and which kinds each can run.

A worker notes itself when it starts and every `NOTE_SECONDS`, and takes the note back when it
stops. The note of one that died is deleted by a sweep after `SILENT_SECONDS`. Nothing depends on
these notes but the reasons that people read and the number of pilots that a scaler orders: leases
alone decide who holds a job.
"""

import json
from dataclasses import dataclass

from ade.domain.units import MICROSECONDS
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction

NOTE_SECONDS = 10.0
SILENT_SECONDS = 35.0
WORKERS_LISTED_MAX = 1000


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """Name a worker that is running, and what it can run."""

    name: str
    host: str
    kinds: frozenset[str]
    slots: int = 0
    drains_in_seconds: float | None = None
    block: str | None = None


def note_worker(
    settings: KernelSettings, tx: Transaction, workers: list[RunningWorker]
) -> list[None]:
    """Note that workers are running."""
    for worker in workers:
        left = worker.drains_in_seconds
        drains_at = None if left is None else tx.now_us + int(left * MICROSECONDS)
        tx.put_worker(
            worker.name,
            worker.host,
            json.dumps(sorted(worker.kinds)),
            worker.slots,
            drains_at,
            worker.block,
        )
    return [None for _ in workers]


def forget_worker(settings: KernelSettings, tx: Transaction, names: list[str]) -> list[None]:
    """Forget workers that have stopped."""
    for name in names:
        tx.delete_worker(name)
    return [None for _ in names]


def forget_silent(tx: Transaction) -> int:
    """Forget workers that died."""
    forgotten = tx.delete_silent_workers(tx.now_us - int(SILENT_SECONDS * MICROSECONDS))
    tx.queue_pauses.delete_of_gone_workers()
    return forgotten
