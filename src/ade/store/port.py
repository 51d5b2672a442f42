"""What the stages need of a database: verbs that run inside one transaction.

`SqlTransaction` runs them on SQLite, PostgreSQL and SQL Server; the reference model
of the tests holds them in dictionaries. One conformance suite runs over all of them.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ade.clock import Clock
from ade.domain.agent_pool import AgentPool
from ade.store.rows import (
    Activation,
    AgentJob,
    AgentJobRow,
    AgentJobVersion,
    Append,
    ArtifactRow,
    Build,
    Claimed,
    ClaimQuery,
    DroppedOutput,
    FinishRow,
    Head,
    HeldJob,
    HeldOutput,
    HostRow,
    IdempotencyRef,
    IdempotencyRow,
    JobRef,
    JobRow,
    Lane,
    LeaseRef,
    LiveLease,
    Move,
    Moved,
    NewEvent,
    NewExecution,
    OutputBatch,
    QueuePauseRow,
    Renewal,
    Renewed,
    ScalerRow,
    StaleJob,
    StopRow,
    Version,
    WorkerRow,
)

Result = TypeVar("Result")
OnCommit = Callable[[Sequence[str]], None]


class LostRace(Exception):
    """Another transaction changed what this one has read; this one runs again."""


class AgentJobsReading(Protocol):
    """Read the jobs of agents, their pools and the hosts."""

    def find(self, job_id: str) -> AgentJobRow | None:
        """Find a job of an agent by its id alone."""
        ...

    def page(self, workspace_id: str, before: str | None, limit: int) -> list[AgentJob]:
        """List jobs of agents, newest first."""
        ...

    def versions(self, before: str | None, limit: int) -> list[AgentJobVersion]:
        """List the states of the jobs of agents in all workspaces, newest first."""
        ...

    def waiting(self, workspace_id: str, limit: int) -> list[AgentJob]:
        """List jobs that wait for an agent, in the order of the queue."""
        ...

    def held(self) -> list[HeldJob]:
        """List the jobs that agents hold."""
        ...

    def pool(self, name: str) -> AgentPool | None:
        """Return what the jobs of a pool ask for."""
        ...

    def waiting_pools(self) -> list[AgentPool]:
        """Return the pools in which jobs could be claimed now."""
        ...

    def hosts(self) -> list[HostRow]:
        """List the hosts by name."""
        ...


class QueuePausesReading(Protocol):
    """Read which workspaces and kinds are paused."""

    def list_all(self) -> list[QueuePauseRow]:
        """List what is paused, by scope."""
        ...


class QueuePauses(QueuePausesReading, Protocol):
    """Change which workspaces and kinds are paused."""

    def put(self, pause: QueuePauseRow) -> None:
        """Pause something, or say anew why it is paused; the time of the first pause stays."""
        ...

    def delete(self, scope: str) -> bool:
        """End a pause, and tell whether there was one."""
        ...

    def delete_of_gone_workers(self) -> int:
        """Forget the pauses of workers and agents that are not known any more."""
        ...


class Reading(Protocol):
    """Read jobs and their logs."""

    @property
    def queue_pauses(self) -> QueuePausesReading:
        """Read which workspaces and kinds are paused."""
        ...

    @property
    def agent_jobs(self) -> AgentJobsReading:
        """Read the jobs of agents, their pools and the hosts."""
        ...

    def read_job(self, ref: JobRef) -> JobRow | None:
        """Read one job."""
        ...

    def list_jobs(
        self, workspace_id: str, filters: Mapping[str, Any], before: str | None, limit: int
    ) -> list[JobRow]:
        """Read jobs of a workspace, newest first, that match all filters.

        A filter is a value, or a tuple of values of which a job must have one.
        """
        ...

    def count_jobs(self, workspace_id: str, filters: Mapping[str, Any]) -> dict[str, int]:
        """Count the jobs of a workspace that match all filters, by status."""
        ...

    def read_payload(self, ref: JobRef) -> str | None:
        """Read the payload of a job."""
        ...

    def read_result(self, ref: JobRef) -> str | None:
        """Read the result of a job."""
        ...

    def read_artifacts(self, ref: JobRef) -> list[ArtifactRow]:
        """Read which files a job's result names."""
        ...

    def read_events(self, ref: JobRef, after: int, limit: int) -> list[NewEvent]:
        """Read the events of a job after a position in its log."""
        ...

    def read_output(self, ref: JobRef, after: int, limit: int) -> list[OutputBatch]:
        """Read what a job wrote, after a place in the log of its output."""
        ...

    def lane_holders(self, lane: Lane) -> list[JobRow]:
        """Read the jobs that hold a lane."""
        ...

    def count_lane(self, lane: Lane, limit: int) -> int:
        """Count the queued jobs of a lane, up to a number."""
        ...

    def count_ahead(self, job: JobRow, limit: int) -> int:
        """Count the eligible jobs of the same workspace that go before this one, up to a number."""
        ...

    def workspace_ids(self) -> list[str]:
        """List all workspaces."""
        ...

    def known_jobs(self, ids: list[str]) -> set[str]:
        """Find which of these jobs there are, in any workspace."""
        ...

    def list_workers(self, limit: int) -> list[WorkerRow]:
        """List the workers that are running, up to a number."""
        ...

    def list_leases(self, limit: int) -> list[LiveLease]:
        """List the leases that are held, by their holders, up to a number."""
        ...

    def find_workspace_of_job(self, job_id: str) -> str | None:
        """Find the workspace of a job by the job's id alone."""
        ...

    def list_scalers(self) -> list[ScalerRow]:
        """List the scalers that keep pilots on engines, by name."""
        ...

    def count_by_status(self) -> dict[tuple[str, str], int]:
        """Count live jobs by pool and status, for the metrics."""
        ...


class Versions(Protocol):
    """Change the versions of configurations inside a transaction."""

    def ensure_version(self, version: Version) -> Version:
        """Insert a version that was read from a draft, unless an equal one exists."""
        ...


class Builds(Protocol):
    """Read and change builds and active versions inside a transaction."""

    def settled(self, refs: Sequence[JobRef]) -> list[Build]:
        """Find which of these builds are settled; the others stay as they are until the end."""
        ...

    def find_of(self, version: Version, fingerprint: str) -> Build | None:
        """Find the build of a fingerprint as it is now; others may change it."""
        ...

    def lock_of(
        self, version: Version, fingerprint: str, *, for_change: bool = False
    ) -> Build | None:
        """Find the build of a fingerprint and keep others from changing it.

        Others may lock it, too, unless it is locked for a change.
        """
        ...

    def of_jobs(self, refs: Sequence[JobRef]) -> list[Build]:
        """Find the builds that these jobs do the work of, and that are not settled."""
        ...

    def insert(self, build: Build) -> None:
        """Insert a build."""
        ...

    def queue(self, build: Build, job_id: str, version_id: str) -> bool:
        """Give a settled build a job to make it again; tell whether it was still as seen."""
        ...

    def settle(self, build: Build) -> bool:
        """Record what became of a build; tell whether it was still for its job to say."""
        ...

    def activation(self, workspace_id: str, configuration_id: str) -> Activation | None:
        """Find which version of a configuration is active, and keep others from changing it."""
        ...

    def put_activation(self, activation: Activation) -> None:
        """Write which version of a configuration is active, and which one is to become it."""
        ...


class AgentJobs(AgentJobsReading, Protocol):
    """Change what is known of the jobs of agents, and of the hosts."""

    def insert(self, job: AgentJobRow, pool: AgentPool) -> None:
        """Insert what is known of a new job, and its pool if it is the first one there."""
        ...

    def record(self, job_id: str, facts: str) -> None:
        """Record what an agent reported of a job, now."""
        ...

    def stale(self, seen_before: int, limit: int) -> list[StaleJob]:
        """Find the jobs whose status is stale, or whose agent was not seen since a time."""
        ...

    def due(self, limit: int) -> list[JobRow]:
        """Find the jobs of agents whose time has come."""
        ...

    def put_hosts(self, hosts: Sequence[HostRow]) -> None:
        """Note that hosts were heard of, and what they said."""
        ...

    def delete_silent_hosts(self, seen_before: int) -> int:
        """Forget hosts that were not heard of for long."""
        ...


class Transaction(Reading, Protocol):
    """Change jobs and their logs; all of it or nothing."""

    now_us: int

    @property
    def catalogue(self) -> Versions:
        """Change the versions of configurations."""
        ...

    @property
    def builds(self) -> Builds:
        """Read and change builds."""
        ...

    @property
    def queue_pauses(self) -> QueuePauses:
        """Change which workspaces and kinds are paused."""
        ...

    @property
    def agent_jobs(self) -> AgentJobs:
        """Change what is known of the jobs of agents, and of the hosts."""
        ...

    def notify(self, *topics: str) -> None:
        """Publish these topics to their waiters, once the transaction has committed."""
        ...

    def register_executions(self, new: Sequence[NewExecution]) -> list[JobRow]:
        """Register jobs for their work, and return the jobs that were registered before."""
        ...

    def insert_jobs(
        self, born: Sequence[JobRow], payloads: Sequence[str], first_events: Mapping[str, str]
    ) -> None:
        """Insert jobs with their first events, whose data depend on the status."""
        ...

    def forget_executions(self, registered: Sequence[NewExecution]) -> None:
        """Delete the registrations of jobs for their work."""
        ...

    def find_idempotency(self, ref: IdempotencyRef) -> IdempotencyRow | None:
        """Find the answer to a request by its idempotency key."""
        ...

    def insert_idempotency(self, row: IdempotencyRow) -> None:
        """Insert an idempotency key, with the answer if there is one already."""
        ...

    def answer_idempotency(self, row: IdempotencyRow) -> None:
        """Record the answer to a request that had none yet."""
        ...

    def delete_idempotency(self, created_before: int) -> int:
        """Delete old idempotency keys."""
        ...

    def pass_gate(self, name: str) -> None:
        """Wait until no other transaction has passed this gate and not ended yet."""
        ...

    def count_waiting(self, pool: str, limit: int) -> int:
        """Count waiting jobs of a pool, up to about a number."""
        ...

    def count_waiting_in(self, workspace_id: str, pool: str, limit: int) -> int:
        """Count waiting jobs of a workspace in a pool, up to about a number."""
        ...

    def lock_lanes(self, lanes: Sequence[Lane]) -> None:
        """Keep other transactions from changing which job is next in these lanes."""
        ...

    def held_lanes(self, lanes: Sequence[Lane]) -> set[Lane]:
        """Find which of these lanes have a holder."""
        ...

    def promote_lanes(self, lanes: Sequence[Lane]) -> list[Head]:
        """Make the first queued job of each free lane eligible."""
        ...

    def stalled_lanes(self, limit: int) -> list[Lane]:
        """Find lanes with queued jobs and no holder."""
        ...

    def clear_lane(self, lease: LeaseRef, source: str) -> list[Moved]:
        """Take the lane from a job that ended without success."""
        ...

    def next_workspaces(self, pool: str, after: str, limit: int) -> list[str]:
        """List workspaces with eligible jobs, in order, after a given one."""
        ...

    def others_wait(self, pool: str, workspace_id: str) -> bool:
        """Tell whether any other workspace has eligible jobs."""
        ...

    def claim(self, query: ClaimQuery) -> Claimed:
        """Take those of the next eligible jobs of a workspace that the claimer can run; log it."""
        ...

    def set_aside(self, query: ClaimQuery, limit: int) -> int:
        """Make those of the next eligible jobs that the claimer cannot run wait for their kind."""
        ...

    def kinds_set_aside(self, pool: str, kinds: Collection[str]) -> list[str]:
        """Find of which of these kinds jobs are set aside."""
        ...

    def recall(self, pool: str, kind: str, limit: int) -> int:
        """Make jobs of a kind that were set aside eligible again, and count them."""
        ...

    def put_worker(
        self,
        name: str,
        host: str,
        kinds: str,
        slots: int = 0,
        drains_at: int | None = None,
        block: str | None = None,
    ) -> None:
        """Note that a worker is running, now, and that its block has started it."""
        ...

    def delete_worker(self, name: str) -> None:
        """Forget a worker that has stopped."""
        ...

    def delete_silent_workers(self, seen_before: int) -> int:
        """Forget workers that were not seen for long."""
        ...

    def renew(self, renewals: Sequence[Renewal]) -> list[Renewed]:
        """Extend leases."""
        ...

    def finish(self, rows: Sequence[FinishRow]) -> list[bool]:
        """Record how running attempts ended, and log it; False for one that lost its lease."""
        ...

    def move(self, moves: Sequence[Move]) -> list[Moved]:
        """Move jobs out of the status and fence that were seen, and log it."""
        ...

    def append(self, appends: Sequence[Append]) -> list[Moved]:
        """Reserve positions in event logs for the holder of the lease."""
        ...

    def insert_events(self, events: Sequence[NewEvent]) -> None:
        """Append events whose positions were reserved by a change of their job."""
        ...

    def hold_output(self, leases: Sequence[LeaseRef]) -> list[HeldOutput]:
        """Find how far the output of these attempts is stored; none for one that lost its lease."""
        ...

    def insert_output(self, batches: Sequence[OutputBatch]) -> None:
        """Append output of attempts whose leases are held."""
        ...

    def drop_output(self, dropped: Sequence[DroppedOutput]) -> None:
        """Delete the middle of what attempts wrote."""
        ...

    def drop_attempts(self, last: Sequence[LeaseRef]) -> None:
        """Delete the output of jobs' attempts up to these."""
        ...

    def request_stop(self, stops: Sequence[StopRow]) -> list[Moved]:
        """Ask running attempts to stop."""
        ...

    def report_started(self, lease: LeaseRef, at: int) -> list[Moved]:
        """Record that a dispatched attempt has begun."""
        ...

    def lock_jobs(self, refs: Sequence[JobRef]) -> list[JobRow]:
        """Read jobs and keep others from changing them until the end."""
        ...

    def lock_free_jobs(self, refs: Sequence[JobRef]) -> list[JobRow]:
        """Read and lock jobs, passing over those that others have locked."""
        ...

    def due_jobs(self, pool: str, limit: int) -> list[JobRow]:
        """Find jobs whose time has come."""
        ...

    def expired_jobs(self, limit: int) -> list[JobRow]:
        """Find running jobs whose lease has expired."""
        ...

    def overdue_jobs(self, grace_us: int, limit: int) -> list[JobRow]:
        """Find running jobs that are over their timeout although their lease is alive."""
        ...

    def jobs_of_build(self, workspace_id: str, build_id: str) -> list[JobRow]:
        """Lock jobs that wait for a build."""
        ...

    def insert_artifacts(self, new: Sequence[ArtifactRow]) -> None:
        """Insert the files that results name."""
        ...

    def delete_artifacts(self, refs: Sequence[JobRef]) -> None:
        """Delete the artifacts of jobs."""
        ...

    def delete_finished(self, workspace_id: str, finished_before: int, limit: int) -> list[JobRef]:
        """Delete old finished jobs with their logs, and return which."""
        ...

    def delete_job(self, job: JobRow) -> None:
        """Delete a finished job with its logs; the caller has locked it."""
        ...


# A verb takes the items of all concurrent callers, and returns an outcome for each.
Verb = Callable[[Transaction, list[Any]], Sequence[Any]]


class Store(Protocol):
    """Run verbs in transactions, and reads beside them."""

    clock: Clock
    on_commit: OnCommit

    def write(self, verb: Verb, items: list[Any]) -> Sequence[Any]:
        """Run a verb and wait for its commit."""
        ...

    def awrite(self, verb: Verb, items: list[Any]) -> "asyncio.Future[Sequence[Any]]":
        """Run a verb; the future resolves when it has committed."""
        ...

    def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        ...

    async def aread(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot without holding up the event loop."""
        ...

    def close(self) -> None:
        """Finish what was begun and close the connections."""
        ...
