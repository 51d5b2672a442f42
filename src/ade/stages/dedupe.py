"""The same work is done once (seed 003, 5.2).

A succeeded job answers for its twins at once; a live one is joined; one that failed is replaced,
unless the caller would rather have its failure. Two twins that arrive in the same moment, in one
process or in two, meet at the primary key of `executions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ade.domain.errors import AdeError
from ade.domain.job import LIVE, Status
from ade.store.port import Transaction
from ade.store.rows import ExecutionRef, JobRow, NewExecution

if TYPE_CHECKING:
    from ade.stages.submit import Outcome, Submission

_STANDS = LIVE | {Status.SUCCEEDED}


def registers(ask: Submission) -> bool:
    """Tell whether the new job is to stand for its execution key."""
    return ask.dedupe and ask.execution_key is not None


def join(
    tx: Transaction, asked: list[Submission], outcomes: dict[int, Outcome], repeated: set[int]
) -> tuple[dict[int, int], dict[int, NewExecution]]:
    """Answer with jobs that already stand for the work.

    Return which later twins go with which first of them, and which firsts replace a job that ended
    without success.
    """
    from ade.stages.submit import Accepted

    firsts: dict[ExecutionRef, int] = {}
    twins: dict[int, int] = {}
    for index, ask in enumerate(asked):
        if index in outcomes or index in repeated or not registers(ask):
            continue
        ref = ExecutionRef(ask.workspace_id, ask.execution_key or "")
        first = firsts.setdefault(ref, index)
        if first != index:
            twins[index] = first
    replaced: dict[int, NewExecution] = {}
    for job in tx.find_executions(list(firsts)) if firsts else []:
        ref = ExecutionRef(job.workspace_id, job.execution_key or "")
        index = firsts[ref]
        if _answers(job, asked[index]):
            outcomes[index] = Accepted(job, deduplicated=True)
        else:
            replaced[index] = NewExecution(*ref, job.id)
    return twins, replaced


def forget(tx: Transaction, replaced: dict[int, NewExecution], admitted: list[int]) -> None:
    """Let admitted jobs take the places of failed ones; a refused job changes nothing."""
    stands = [replaced[index] for index in admitted if index in replaced]
    if stands:
        tx.forget_executions(stands)


def _answers(job: JobRow, ask: Submission) -> bool:
    status = Status(job.status)
    return status in _STANDS or (status is Status.FAILED and ask.reuse_failed)


def joined(first: Outcome) -> Outcome:
    """Give a twin what the first of them got."""
    from ade.stages.submit import Accepted

    return first if isinstance(first, AdeError) else Accepted(first.job, deduplicated=True)
