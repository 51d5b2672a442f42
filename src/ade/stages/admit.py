"""Capacity is reserved before anything is written: a refused job leaves no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ade.domain.errors import QueueFull
from ade.stages.rules import LOCAL, Rules
from ade.store.port import Transaction

if TYPE_CHECKING:
    from ade.stages.submit import Outcome, Submission

GATE = "admission"


def admit(
    rules: Rules,
    tx: Transaction,
    asked: list[Submission],
    new: list[int],
    outcomes: dict[int, Outcome],
) -> list[int]:
    """Let in as many as there is room for, in the order in which they came.

    Only jobs for the local workers are counted; those that wait for an agent are its own affair.
    """
    is_bounded = rules.queue_size or rules.workspace_queue_size
    if not is_bounded or not any(asked[index].pool == LOCAL for index in new):
        return new
    tx.pass_gate(GATE)
    room = _Room(rules, tx)
    admitted = []
    for index in new:
        ask = asked[index]
        refusal = room.take(ask.workspace_id) if ask.pool == LOCAL else None
        if refusal is None:
            admitted.append(index)
        else:
            outcomes[index] = refusal
    return admitted


class _Room:
    """Hold the places that are free: in the queue, and in what each workspace may have of it."""

    def __init__(self, rules: Rules, tx: Transaction) -> None:
        self._rules = rules
        self._tx = tx
        self._free: int | None = None
        self._free_in: dict[str, int] = {}

    def take(self, workspace_id: str) -> QueueFull | None:
        """Take one place, or say why there is none."""
        rules = self._rules
        if rules.workspace_queue_size and self._left_in(workspace_id) <= 0:
            told = (
                f"The workspace's quota is used up: {rules.workspace_queue_size} of its jobs are"
                " waiting (ADE_WORKSPACE_QUEUE_SIZE)."
            )
            return self._full(told, workspace_id)
        if rules.queue_size:
            if self._left() <= 0:
                return self._full(f"The queue is full: {rules.queue_size} jobs are waiting.")
            self._free = self._left() - 1
        if rules.workspace_queue_size:
            self._free_in[workspace_id] -= 1
        return None

    def _left(self) -> int:
        if self._free is None:
            size = self._rules.queue_size
            self._free = size - self._tx.count_waiting(LOCAL, size)
        return self._free

    def _left_in(self, workspace_id: str) -> int:
        if workspace_id not in self._free_in:
            size = self._rules.workspace_queue_size
            waiting = self._tx.count_waiting_in(workspace_id, LOCAL, size)
            self._free_in[workspace_id] = size - waiting
        return self._free_in[workspace_id]

    def _full(self, told: str, workspace_id: str | None = None) -> QueueFull:
        wait = self._rules.drained.retry_after_seconds(self._tx.now_us, workspace_id)
        return QueueFull(f"{told} Try again in about {wait} s.", retry_after_seconds=wait)
