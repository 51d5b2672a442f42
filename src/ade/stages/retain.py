"""Delete what is old: finished jobs with their logs, and recorded responses."""

from dataclasses import dataclass

from ade.domain.units import MICROSECONDS
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import JobRef

JOBS_PER_CALL_MAX = 500


@dataclass(frozen=True, slots=True)
class Retain:
    """Delete the old jobs of a workspace."""

    workspace_id: str


def retain(settings: KernelSettings, tx: Transaction, requests: list[Retain]) -> list[list[JobRef]]:
    """Delete finished jobs past their time, a bounded number at once.

    Return which, so that the caller removes their folders. A job that still holds its target back
    is kept until a person decides about it.
    """
    tx.delete_idempotency(tx.now_us - int(settings.idempotency_ttl_seconds * MICROSECONDS))
    if settings.retain_seconds == 0:
        return [[] for _ in requests]
    before = tx.now_us - int(settings.retain_seconds * MICROSECONDS)
    return [tx.delete_finished(one.workspace_id, before, JOBS_PER_CALL_MAX) for one in requests]
