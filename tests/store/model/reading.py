"""The verbs of the port that only read, on dictionaries."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.store.model.agent_jobs import MemoryAgentJobs
from tests.store.model.queue_pauses import MemoryQueuePauses
from tests.store.model.tables import Tables

from ade.domain.job import TERMINAL, Status
from ade.store.rows import (
    ArtifactRow,
    JobRef,
    JobRow,
    Lane,
    LiveLease,
    NewEvent,
    OutputBatch,
    ScalerRow,
    WorkerRow,
)


def place_in_line(job: JobRow) -> tuple[int, str]:
    """Return the key that the queue is ordered by."""
    return (job.rank, job.id)


def _matches(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, tuple) else value == wanted


class MemoryReading:
    """Read jobs and their logs."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.agent_jobs = MemoryAgentJobs(tables)
        self.queue_pauses = MemoryQueuePauses(tables)

    def _jobs(self, **wanted: Any) -> Iterator[JobRow]:
        """Find jobs by the values of their columns."""
        for job in list(self._tables.jobs.values()):
            if all(_matches(getattr(job, name), value) for name, value in wanted.items()):
                yield job

    def _lane(self, lane: Lane, **wanted: Any) -> list[JobRow]:
        return sorted(self._jobs(**lane._asdict(), **wanted), key=place_in_line)

    def read_job(self, ref: JobRef) -> JobRow | None:
        """Read one job."""
        return self._tables.jobs.get(JobRef(*ref))

    def list_jobs(
        self, workspace_id: str, filters: Mapping[str, Any], before: str | None, limit: int
    ) -> list[JobRow]:
        """Read jobs of a workspace, newest first, that match all filters."""
        found = [
            job
            for job in self._filtered(workspace_id, filters)
            if before is None or job.id < before
        ]
        return sorted(found, key=lambda job: job.id, reverse=True)[:limit]

    def count_jobs(self, workspace_id: str, filters: Mapping[str, Any]) -> dict[str, int]:
        """Count the jobs of a workspace that match all filters, by status."""
        return dict(Counter(job.status for job in self._filtered(workspace_id, filters)))

    def _filtered(self, workspace_id: str, filters: Mapping[str, Any]) -> list[JobRow]:
        wanted = dict(filters)
        after = wanted.pop("submitted_after", None)
        until = wanted.pop("submitted_before", None)
        return [
            job
            for job in self._jobs(workspace_id=workspace_id, **wanted)
            if (after is None or job.submitted_at > after)
            and (until is None or job.submitted_at < until)
        ]

    def read_payload(self, ref: JobRef) -> str | None:
        """Read what a job was asked to do."""
        return self._tables.payloads.get(JobRef(*ref))

    def read_result(self, ref: JobRef) -> str | None:
        """Read the result of a job."""
        return self._tables.results.get(JobRef(*ref))

    def read_artifacts(self, ref: JobRef) -> list[ArtifactRow]:
        """Read which files a job's result names."""
        kept = self._tables.artifacts.values()
        return sorted(row for row in kept if (row.workspace_id, row.job_id) == tuple(ref))

    def read_events(self, ref: JobRef, after: int, limit: int) -> list[NewEvent]:
        """Read the event log of a job after a place in it."""
        log = self._tables.events.get(JobRef(*ref), ())
        later = [event for event in log if event.seq > after]
        return sorted(later, key=lambda event: event.seq)[:limit]

    def read_output(self, ref: JobRef, after: int, limit: int) -> list[OutputBatch]:
        """Read what a job wrote, after a place in the log of its output."""
        log = self._tables.output.get(JobRef(*ref), ())
        later = [batch for batch in log if batch.seq > after]
        return sorted(later, key=lambda batch: batch.seq)[:limit]

    def lane_holders(self, lane: Lane) -> list[JobRow]:
        """Read the jobs that hold a lane."""
        return self._lane(lane, holds_lane=1)

    def count_lane(self, lane: Lane, limit: int) -> int:
        """Count the queued jobs of a lane, up to a number."""
        return min(limit, len(self._lane(lane, status=Status.QUEUED)))

    def count_ahead(self, job: JobRow, limit: int) -> int:
        """Count the eligible jobs of the same workspace that go before this one, up to a number."""
        rivals = self._jobs(workspace_id=job.workspace_id, pool=job.pool, eligible=1)
        return min(limit, sum(place_in_line(rival) < place_in_line(job) for rival in rivals))

    def workspace_ids(self) -> list[str]:
        """List all workspaces."""
        return sorted(self._tables.workspaces)

    def known_jobs(self, ids: list[str]) -> set[str]:
        """Find which of these jobs there are, in any workspace."""
        return {ref.id for ref in self._tables.jobs if ref.id in ids}

    def list_leases(self, limit: int) -> list[LiveLease]:
        """List the leases that are held, by their holders."""
        held = [
            LiveLease(*(getattr(job, name) for name in LiveLease._fields))
            for job in self._jobs(status=Status.RUNNING)
        ]
        return sorted(held, key=lambda lease: (lease.lease_owner, lease.id))[:limit]

    def find_workspace_of_job(self, job_id: str) -> str | None:
        """Find the workspace of a job by the job's id alone."""
        return next((job.workspace_id for job in self._jobs(id=job_id)), None)

    def list_scalers(self) -> list[ScalerRow]:
        """List the scalers: the model has none."""
        return []

    def list_workers(self, limit: int) -> list[WorkerRow]:
        """List the workers that are running."""
        return sorted(self._tables.workers.values())[:limit]

    def count_by_status(self) -> dict[tuple[str, str], int]:
        """Count live jobs by pool and status, for the metrics."""
        counts: dict[tuple[str, str], int] = {}
        for job in self._jobs():
            if job.status not in TERMINAL:
                counts[job.pool, job.status] = counts.get((job.pool, job.status), 0) + 1
        return counts
