"""The same work is done once (seed 003, 5.2).

A succeeded job answers for its twins at once; a live one is joined; one that failed is replaced,
unless the caller would rather have its failure. Two twins that arrive in the same moment, in one
process or in two, meet at the primary key of `executions`: the second waits for the first and finds
it there. So a new job is registered before anything else is known of it, and withdrawn if it is
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ade.domain.errors import AdeError
from ade.domain.job import LIVE, Status
from ade.store.port import Overtaken, Transaction
from ade.store.rows import JobRow, NewExecution

if TYPE_CHECKING:
    from ade.stages.submit import Outcome, Submission

_STANDS = LIVE | {Status.SUCCEEDED}


class Joined(NamedTuple):
    """Say who stands for what, by the places of the submissions.

    `firsts` were registered, unless another job stood for the same already; the jobs in `failed`
    did, but ended without success; each of `twins` goes with its first.
    """

    firsts: dict[int, NewExecution]
    failed: dict[int, NewExecution]
    twins: dict[int, int]


def join(
    tx: Transaction,
    asked: list[Submission],
    ids: list[str],
    outcomes: dict[int, Outcome],
    repeated: set[int],
) -> Joined:
    """Let new jobs stand for their work, and answer with jobs that already do."""
    from ade.stages.submit import Accepted

    places: dict[tuple[str, str], int] = {}
    joined = Joined({}, {}, {})
    for index, ask in enumerate(asked):
        key = ask.execution_key
        if key is None or not ask.dedupe or index in outcomes or index in repeated:
            continue
        first = places.setdefault((ask.workspace_id, key), index)
        if first == index:
            joined.firsts[index] = NewExecution(ask.workspace_id, key, ids[index])
        else:
            joined.twins[index] = first
    for job in tx.register_executions(list(joined.firsts.values())) if places else ():
        index = places[job.workspace_id, job.execution_key or ""]
        if _answers(job, asked[index]):
            outcomes[index] = Accepted(job, deduplicated=True)
        else:
            joined.failed[index] = joined.firsts[index]._replace(job_id=job.id)
    return joined


def settle(tx: Transaction, joined: Joined, new: list[int], admitted: list[int]) -> None:
    """Let admitted jobs take the places of failed ones; a refused job changes nothing."""
    if len(admitted) == len(new) and not joined.failed:
        return
    firsts, failed = joined.firsts, joined.failed
    refused = set(new).difference(admitted)
    leaving = [failed[index] for index in admitted if index in failed]
    leaving += [firsts[index] for index in refused if index in firsts and index not in failed]
    tx.forget_executions(leaving)
    if tx.register_executions([firsts[index] for index in admitted if index in failed]):
        raise Overtaken("another job took the place of the one that failed")


def _answers(job: JobRow, ask: Submission) -> bool:
    status = Status(job.status)
    return status in _STANDS or (status is Status.FAILED and ask.reuse_failed)


def joined(first: Outcome) -> Outcome:
    """Give a twin what the first of them got."""
    from ade.stages.submit import Accepted

    return first if isinstance(first, AdeError) else Accepted(first.job, deduplicated=True)
