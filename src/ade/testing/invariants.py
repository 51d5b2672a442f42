"""What can never be true of a job, in plain words: the CHECK constraints of the schema, as a fake
must keep them. Each has the name that its constraint has in the database."""

from collections.abc import Callable

from ade.domain.job import TERMINAL, Priority, Status, StopRequest
from ade.store.rows import JobRow


class ImpossibleRow(Exception):
    """The row cannot be true, and a database would refuse it; `constraint` says why."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


def _leased(job: JobRow) -> bool:
    return job.lease_owner is not None and job.lease_expires_at is not None


def _unleased(job: JobRow) -> bool:
    return job.lease_owner is None and job.lease_expires_at is None


def _run_is_complete(job: JobRow) -> bool:
    return None not in (job.configuration_id, job.document_id, job.build_id)


JOB_INVARIANTS: dict[str, Callable[[JobRow], bool]] = {
    "ck_jobs_status": lambda job: job.status in list(Status),
    "ck_jobs_priority": lambda job: job.priority in list(Priority),
    "ck_jobs_stop_request": lambda job: job.stop_request in [None, *StopRequest],
    "ck_jobs_terminal_iff_finished_at": lambda job: (
        (job.status in TERMINAL) == (job.finished_at is not None)
    ),
    "ck_jobs_running_iff_leased": lambda job: (
        _leased(job) if job.status == Status.RUNNING else _unleased(job)
    ),
    "ck_jobs_stop_needs_running": lambda job: (
        job.stop_request is None or job.status == Status.RUNNING
    ),
    "ck_jobs_running_has_fence": lambda job: job.status != Status.RUNNING or job.fence > 0,
    "ck_jobs_pending_has_time": lambda job: (
        job.status != Status.PENDING or job.not_before is not None
    ),
    "ck_jobs_eligible_is_queued": lambda job: (
        job.eligible == 0 or (job.eligible == 1 and job.status == Status.QUEUED)
    ),
    "ck_jobs_lane_has_target": lambda job: (
        job.holds_lane == 0 or (job.holds_lane == 1 and job.target_id is not None)
    ),
    "ck_jobs_head_holds_lane": lambda job: (
        job.target_id is None
        or job.holds_lane == 1
        or (job.eligible == 0 and job.status != Status.RUNNING)
    ),
    "ck_jobs_lane_or_build": lambda job: job.target_id is None or job.build_id is None,
    "ck_jobs_run_is_complete": lambda job: job.kind != "normalize" or _run_is_complete(job),
    "ck_jobs_counts": lambda job: min(job.fence, job.retries_left, job.event_seq) >= 0,
}


def check_job(job: JobRow) -> None:
    """Raise `ImpossibleRow` if a job cannot be as this row says."""
    for name, holds in JOB_INVARIANTS.items():
        if not holds(job):
            raise ImpossibleRow(name)
