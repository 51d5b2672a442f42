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
    if rules.queue_size == 0 or not any(asked[index].pool == LOCAL for index in new):
        return new
    tx.pass_gate(GATE)
    room = rules.queue_size - tx.count_waiting(LOCAL, rules.queue_size)
    admitted = []
    for index in new:
        if asked[index].pool != LOCAL:
            admitted.append(index)
        elif room > 0:
            room -= 1
            admitted.append(index)
        else:
            wait = rules.drained.retry_after_seconds(tx.now_us)
            outcomes[index] = QueueFull(
                f"The queue is full: {rules.queue_size} jobs are waiting."
                f" Try again in about {wait} s.",
                retry_after_seconds=wait,
            )
    return admitted
