"""What can never be true of a job, in plain words: the CHECK constraints of the schema.

Each has the name that its constraint has in the database, where a job lies in two tables: what was
asked (`requests`) and where it is (`jobs`).
"""

from collections.abc import Callable

from ade.domain.evaluation import Evaluation
from ade.domain.job import TERMINAL, Priority, Status, StopRequest
from ade.store.rows import JobRow


class ImpossibleRow(Exception):
    """The row cannot be true, and a database would refuse it; `constraint` says why."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


def _shape(job: JobRow) -> bool:
    """Terminal if and only if finished, running if and only if leased."""
    if job.status not in list(Status):
        return False
    if (job.finished_at is not None) != (job.status in TERMINAL):
        return False
    if job.eligible not in ((0, 1) if job.status == Status.QUEUED else (0,)):
        return False
    if job.status == Status.PENDING and job.not_before is None:
        return False
    if job.status == Status.RUNNING:
        return job.lease_owner is not None and job.lease_expires_at is not None and job.fence > 0
    return job.lease_owner is None and job.lease_expires_at is None and job.stop_request is None


def _run_is_complete(job: JobRow) -> bool:
    return None not in (job.configuration_id, job.document_id, job.build_id)


JOB_INVARIANTS: dict[str, Callable[[JobRow], bool]] = {
    "ck_jobs_shape": _shape,
    "ck_requests_priority": lambda job: job.priority in list(Priority),
    "ck_jobs_stop_request": lambda job: job.stop_request in [None, *StopRequest],
    "ck_jobs_lane_has_target": lambda job: (
        job.holds_lane == 0 or (job.holds_lane == 1 and job.target_id is not None)
    ),
    "ck_jobs_head_holds_lane": lambda job: (
        job.target_id is None
        or job.holds_lane == 1
        or (job.eligible == 0 and job.status != Status.RUNNING)
    ),
    "ck_requests_run_is_complete": lambda job: job.kind != "normalize" or _run_is_complete(job),
    "ck_jobs_evaluation": lambda job: (
        job.evaluation is None
        or (job.evaluation in list(Evaluation) and None not in (job.finished_at, job.counts))
    ),
    "ck_jobs_counts": lambda job: min(job.fence, job.retries_left, job.event_seq) >= 0,
}


def check_job(job: JobRow) -> None:
    """Raise `ImpossibleRow` if a job cannot be as this row says."""
    for name, holds in JOB_INVARIANTS.items():
        if not holds(job):
            raise ImpossibleRow(name)
