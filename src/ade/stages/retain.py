"""Forget what is old: finished jobs with their logs, answers to repeated requests."""

from dataclasses import dataclass

from ade.domain.lease import MICROSECONDS
from ade.stages.rules import Rules
from ade.store.port import Transaction
from ade.store.rows import JobRef

JOBS_PER_TURN_MAX = 500


@dataclass(frozen=True, slots=True)
class Retain:
    """Ask that the old jobs of a workspace be forgotten."""

    workspace_id: str


def retain(rules: Rules, tx: Transaction, asks: list[Retain]) -> list[list[JobRef]]:
    """Delete finished jobs past their time, a bounded number at once; say which, for their folders.

    A job that still holds its target back is kept until someone decides about it.
    """
    tx.delete_idempotency(tx.now_us - int(rules.idempotency_ttl_seconds * MICROSECONDS))
    if rules.retain_seconds == 0:
        return [[] for _ in asks]
    before = tx.now_us - int(rules.retain_seconds * MICROSECONDS)
    return [tx.delete_finished(ask.workspace_id, before, JOBS_PER_TURN_MAX) for ask in asks]
