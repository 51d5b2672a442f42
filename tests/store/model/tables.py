"""The tables of the in-memory store, with the constraints that span rows."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.store.model.invariants import ImpossibleRow, check_job

from ade.domain.agent_pool import AgentPool
from ade.domain.job import Status
from ade.store.rows import (
    Activation,
    AgentJobRow,
    ArtifactRow,
    Build,
    HostRow,
    IdempotencyRef,
    IdempotencyRow,
    JobRef,
    JobRow,
    NewEvent,
    OutputBatch,
    QueuePauseRow,
    Version,
    WorkerRow,
)


class ExecutionRef(NamedTuple):
    """Name a piece of work by its key."""

    workspace_id: str
    execution_key: str


@dataclass
class Tables:
    """Hold what a database holds; every value is immutable, so a shallow copy is a snapshot."""

    workspaces: set[str] = field(default_factory=set)
    documents: set[JobRef] = field(default_factory=set)
    configurations: set[JobRef] = field(default_factory=set)
    versions: dict[JobRef, Version] = field(default_factory=dict)
    builds: dict[JobRef, Build] = field(default_factory=dict)
    activations: dict[JobRef, Activation] = field(default_factory=dict)
    jobs: dict[JobRef, JobRow] = field(default_factory=dict)
    payloads: dict[JobRef, str] = field(default_factory=dict)
    events: dict[JobRef, tuple[NewEvent, ...]] = field(default_factory=dict)
    results: dict[JobRef, str] = field(default_factory=dict)
    output: dict[JobRef, tuple[OutputBatch, ...]] = field(default_factory=dict)
    artifacts: dict[JobRef, ArtifactRow] = field(default_factory=dict)
    executions: dict[ExecutionRef, str] = field(default_factory=dict)
    idempotency: dict[IdempotencyRef, IdempotencyRow] = field(default_factory=dict)
    # Which jobs wait for a worker of their kind.
    set_aside: dict[JobRef, str] = field(default_factory=dict)
    workers: dict[str, WorkerRow] = field(default_factory=dict)
    agent_jobs: dict[str, AgentJobRow] = field(default_factory=dict)
    agent_pools: dict[str, AgentPool] = field(default_factory=dict)
    hosts: dict[str, HostRow] = field(default_factory=dict)
    queue_pauses: dict[str, QueuePauseRow] = field(default_factory=dict)

    def copy(self) -> "Tables":
        """Return a snapshot that later changes do not reach."""
        return Tables(**{name: rows.copy() for name, rows in vars(self).items()})

    def put_job(self, job: JobRow) -> None:
        """Insert or update a job, unless it is impossible by itself or beside the others."""
        check_job(job)
        self._check_parents(job)
        if job.status == Status.RUNNING and job.target_id is not None:
            self._check_live_target(job)
        if job.eligible or job.status != Status.QUEUED or job.not_before is not None:
            self.set_aside.pop(JobRef(job.workspace_id, job.id), None)
        self.jobs[JobRef(job.workspace_id, job.id)] = job

    def _check_parents(self, job: JobRow) -> None:
        if job.workspace_id not in self.workspaces:
            raise ImpossibleRow("fk_requests_workspace_id")
        for column, parents in (
            ("document_id", self.documents),
            ("configuration_id", self.configurations),
            ("build_id", self.builds),
        ):
            parent = getattr(job, column)
            if parent is not None and JobRef(job.workspace_id, parent) not in parents:
                raise ImpossibleRow(f"fk_requests_workspace_id_{column}")

    def _check_live_target(self, job: JobRow) -> None:
        for other in self.jobs.values():
            if (
                other.status == Status.RUNNING
                and (other.workspace_id, other.target_id) == (job.workspace_id, job.target_id)
                and other.id != job.id
            ):
                raise ImpossibleRow("ux_jobs_live_target")

    def add_event(self, event: NewEvent) -> None:
        """Append an event at a place that is still free."""
        ref = JobRef(event.workspace_id, event.job_id)
        log = self.events.get(ref, ())
        if event.seq <= 0:
            raise ImpossibleRow("ck_events_seq")
        if any(earlier.seq == event.seq for earlier in log):
            raise ImpossibleRow("pk_events")
        self.events[ref] = (*log, event)

    def add_output(self, batch: OutputBatch) -> None:
        """Append a batch of output at a place that is still free."""
        ref = JobRef(batch.workspace_id, batch.job_id)
        log = self.output.get(ref, ())
        if batch.seq <= 0 or batch.attempt <= 0 or not 0 <= batch.starts < batch.ends:
            raise ImpossibleRow("ck_output_batches_place")
        if any(earlier.seq == batch.seq for earlier in log):
            raise ImpossibleRow("pk_output_batches")
        self.output[ref] = (*log, batch)

    def put_result(self, ref: JobRef, result: str | None) -> None:
        """Record the result of a job in place of an earlier one; None for no result."""
        self.results.pop(ref, None)
        if result is not None:
            self.results[ref] = result

    def add_execution(self, ref: ExecutionRef, job_id: str) -> None:
        """Register a job for a piece of work; only one can be."""
        if ref in self.executions:
            raise ImpossibleRow("pk_executions")
        self.executions[ref] = job_id
