"""Do the same work once.

A succeeded job answers for its duplicates at once, and a live one is joined. One that failed is
replaced, unless the caller asks for its failure with `reuse_failed`. Two duplicates that arrive at
the same moment, in one process or in two, meet at the primary key of `executions`: the second waits
for the first and finds it there. So a new job is registered before anything else is known of it,
and withdrawn if it is refused.
"""

from typing import NamedTuple

from ade.domain.errors import AdeError
from ade.domain.job import LIVE, Status
from ade.stages.submit.model import Accepted, Answer, Submission
from ade.store.port import LostRace, Transaction
from ade.store.rows import JobRow, NewExecution

_ANSWERS_FOR_DUPLICATES = LIVE | {Status.SUCCEEDED}


class Registered(NamedTuple):
    """Hold which jobs own which execution keys, by the index of the submission.

    `firsts` were registered as owners unless another job owned the key already. The jobs in
    `failed` did, but ended without success. Each of `duplicates` gets the answer of its first.
    """

    firsts: dict[int, NewExecution]
    failed: dict[int, NewExecution]
    duplicates: dict[int, int]


def register(
    tx: Transaction,
    submissions: list[Submission],
    ids: list[str],
    answers: dict[int, Answer],
    repeated: set[int],
) -> Registered:
    """Register new jobs as owners of their execution keys, or answer with the owners."""
    indexes: dict[tuple[str, str], int] = {}
    registered = Registered({}, {}, {})
    for index, submission in enumerate(submissions):
        key = submission.execution_key
        if key is None or not submission.dedupe or index in answers or index in repeated:
            continue
        first = indexes.setdefault((submission.workspace_id, key), index)
        if first == index:
            registered.firsts[index] = NewExecution(submission.workspace_id, key, ids[index])
        else:
            registered.duplicates[index] = first
    for job in tx.register_executions(list(registered.firsts.values())) if indexes else ():
        index = indexes[job.workspace_id, job.execution_key or ""]
        if _answers(job, submissions[index]):
            answers[index] = Accepted(job, deduplicated=True)
        else:
            registered.failed[index] = registered.firsts[index]._replace(job_id=job.id)
    return registered


def settle(tx: Transaction, registered: Registered, new: list[int], admitted: list[int]) -> None:
    """Let admitted jobs take the places of failed ones; a refused job changes nothing."""
    if len(admitted) == len(new) and not registered.failed:
        return
    firsts, failed = registered.firsts, registered.failed
    refused = set(new).difference(admitted)
    leaving = [failed[index] for index in admitted if index in failed]
    leaving += [firsts[index] for index in refused if index in firsts and index not in failed]
    tx.forget_executions(leaving)
    if tx.register_executions([firsts[index] for index in admitted if index in failed]):
        raise LostRace("another job took the place of the one that failed")


def _answers(job: JobRow, submission: Submission) -> bool:
    status = Status(job.status)
    reuses = status is Status.FAILED and submission.reuse_failed
    return status in _ANSWERS_FOR_DUPLICATES or reuses


def answer_duplicate(first: Answer) -> Answer:
    """Give a duplicate the answer that the first submission of the same work got."""
    return first if isinstance(first, AdeError) else Accepted(first.job, deduplicated=True)
