"""Delete what is old: finished jobs with their logs, and recorded responses."""

from dataclasses import dataclass

from ade.domain.build import KIND as BUILD
from ade.domain.errors import AdeError, InvalidTransition, NotFinished, NotFound
from ade.domain.job import TERMINAL, Status
from ade.domain.units import MICROSECONDS
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import JobRef, JobRow

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


def delete(
    settings: KernelSettings, tx: Transaction, refs: list[JobRef]
) -> list[JobRow | AdeError]:
    """Delete jobs that have ended, with their logs; the caller removes their folders."""
    return [_delete(tx, ref) for ref in refs]


def _delete(tx: Transaction, ref: JobRef) -> JobRow | AdeError:
    locked = tx.lock_jobs([ref])
    if not locked:
        return NotFound("There is no such job in this workspace.")
    job = locked[0]
    if Status(job.status) not in TERMINAL:
        return NotFinished("The job has not ended yet. Stop it first.")
    if job.holds_lane:
        return InvalidTransition("The job holds its target. Clear or resolve it first.")
    if job.kind == BUILD:
        return InvalidTransition("The job of a build is kept as long as its build.")
    tx.delete_job(job)
    return job
