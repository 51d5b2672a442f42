"""The reads of the port on a SQL database: each runs statements on one cursor."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ade.domain.ids import uuid7
from ade.store import job_log
from ade.store.agent_jobs import AgentJobReading
from ade.store.agents import AgentReading
from ade.store.builds import BuildReading
from ade.store.catalogue import CatalogueReading
from ade.store.consistency import ConsistencyReading
from ade.store.directory import DirectoryReading
from ade.store.environment_archives import (
    EnvironmentArchiveReading,
)
from ade.store.executor import Executor
from ade.store.job_lists import JobLists
from ade.store.queue_pauses import QueuePauseReading
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
from ade.store.scaling import ScalingReading
from ade.store.storage_usage import StorageUsage, VersionSizes
from ade.store.user_sessions import UserSessionReading


class SqlReading:
    """Read jobs and their logs with one cursor; the other ports read with the same one."""

    def __init__(self, sql: Executor, version_sizes: VersionSizes) -> None:
        self._sql = sql
        self._version_sizes = version_sizes

    @cached_property
    def catalogue(self) -> CatalogueReading:
        """Read documents, configurations, versions and artifacts."""
        return CatalogueReading(self._sql)

    @cached_property
    def usage(self) -> StorageUsage:
        """Read what workspaces store."""
        return StorageUsage(self._sql, self._version_sizes)

    @cached_property
    def builds(self) -> BuildReading:
        """Read builds."""
        return BuildReading(self._sql)

    @cached_property
    def directory(self) -> DirectoryReading:
        """Read workspaces, users, members and API keys."""
        return DirectoryReading(self._sql)

    @cached_property
    def user_sessions(self) -> UserSessionReading:
        """Read the sessions of browsers."""
        return UserSessionReading(self._sql)

    @cached_property
    def environment_archives(self) -> EnvironmentArchiveReading:
        """Read the archives of environments."""
        return EnvironmentArchiveReading(self._sql)

    @cached_property
    def scaling(self) -> ScalingReading:
        """Read the scalers, their blocks and the work that waits for pilots."""
        return ScalingReading(self._sql)

    @cached_property
    def agent_jobs(self) -> AgentJobReading:
        """Read the jobs of agents, their pools and the hosts."""
        return AgentJobReading(self._sql)

    @cached_property
    def agents(self) -> AgentReading:
        """Read the agents that were enrolled."""
        return AgentReading(self._sql)

    @cached_property
    def queue_pauses(self) -> QueuePauseReading:
        """Read which workspaces and kinds are paused."""
        return QueuePauseReading(self._sql)

    @cached_property
    def consistency(self) -> ConsistencyReading:
        """Find rows that contradict each other."""
        return ConsistencyReading(self._sql)

    @cached_property
    def job_lists(self) -> JobLists:
        """List and count jobs."""
        return JobLists(self._sql)

    def export_snapshot(self) -> str:
        """Return a name by which other programs can read what this transaction sees."""
        return self._sql.dialect.export_snapshot(self._sql.cursor)

    def read_job(self, ref: JobRef) -> JobRow | None:
        """Read one job."""
        found = self._sql.first("read_job", *ref)
        return JobRow._make(found) if found else None

    def list_jobs(
        self, workspace_id: str, filters: Mapping[str, Any], before: str | None, limit: int
    ) -> list[JobRow]:
        """Read jobs of a workspace, newest first, that match all filters.

        A filter is a value, or a tuple of values of which a job must have one.
        """
        return self.job_lists.list_jobs(workspace_id, filters, before, limit)

    def count_jobs(self, workspace_id: str, filters: Mapping[str, Any]) -> dict[str, int]:
        """Count the jobs of a workspace that match all filters, by status."""
        return self.job_lists.count_jobs(workspace_id, filters)

    def read_payload(self, ref: JobRef) -> str | None:
        """Read the payload of a job."""
        return self._sql.scalar("read_payload", *ref)  # type: ignore[no-any-return]

    def read_result(self, ref: JobRef) -> str | None:
        """Read the result of a job."""
        return self._sql.scalar("read_result", *ref)  # type: ignore[no-any-return]

    def read_artifacts(self, ref: JobRef) -> list[ArtifactRow]:
        """Read which files a job's result names."""
        return [ArtifactRow._make(row) for row in self._sql.rows("read_artifacts", *ref)]

    def read_events(self, ref: JobRef, after: int, limit: int) -> list[NewEvent]:
        """Read the events of a job after a position: those of the table and of the job's row."""
        found = self._sql.rows("read_events", *ref, after, limit)
        events = [NewEvent._make(row) for row in found]
        own = job_log.parse(*ref, self._sql.scalar("read_history", *ref) or "")
        events += [event for event in own if event.seq > after]
        return sorted(events, key=_place_in_log)[:limit]

    def read_output(self, ref: JobRef, after: int, limit: int) -> list[OutputBatch]:
        """Read what a job wrote, after a place in the log of its output."""
        return [OutputBatch._make(row) for row in self._sql.rows("read_output", *ref, after, limit)]

    def lane_holders(self, lane: Lane) -> list[JobRow]:
        """Read the jobs that hold a lane."""
        return [JobRow._make(row) for row in self._sql.rows("lane_jobs", *lane)]

    def count_lane(self, lane: Lane, limit: int) -> int:
        """Count the queued jobs of a lane, up to a number."""
        return int(self._sql.scalar("count_lane", *lane, limit))

    def count_ahead(self, job: JobRow, limit: int) -> int:
        """Count the eligible jobs of the same workspace that go before this one, up to a number."""
        place = (job.workspace_id, job.pool, job.rank, job.id)
        return int(self._sql.scalar("count_ahead", *place, limit))

    def workspace_ids(self) -> list[str]:
        """List all workspaces."""
        return [row[0] for row in self._sql.rows("workspace_ids")]

    def old_jobs(
        self, workspace_id: str, finished_before: int, after: str, limit: int
    ) -> list[tuple[str, int]]:
        """List jobs that retention would delete, after an identifier, with when they ended."""
        page = (uuid7(finished_before, 0), finished_before, after, limit)
        return [(row[1], int(row[-1])) for row in self._sql.rows("old_jobs", workspace_id, *page)]

    def known_jobs(self, ids: list[str]) -> set[str]:
        """Find which of these jobs there are, in any workspace."""
        found = self._sql.rows("known_jobs", self._sql.dialect.list_parameter(ids))
        return {str(row[0]) for row in found}

    def list_workers(self, limit: int) -> list[WorkerRow]:
        """List the workers that are running, up to a number."""
        return [WorkerRow._make(row) for row in self._sql.rows("list_workers", limit)]

    def list_leases(self, limit: int) -> list[LiveLease]:
        """List the leases that are held, by their holders, up to a number."""
        return [LiveLease._make(row) for row in self._sql.rows("list_leases", limit)]

    def find_workspace_of_job(self, job_id: str) -> str | None:
        """Find the workspace of a job by the job's id alone."""
        return self._sql.scalar("find_workspace_of_job", job_id)  # type: ignore[no-any-return]

    def list_scalers(self) -> list[ScalerRow]:
        """List the scalers that keep pilots on engines, by name."""
        return self.scaling.scalers()

    def count_by_status(self) -> dict[tuple[str, str], int]:
        """Count live jobs by pool and status, for the metrics."""
        found = self._sql.rows("count_by_status")
        return {(pool, status): int(count) for pool, status, count in found}


def _place_in_log(event: NewEvent) -> int:
    return event.seq
