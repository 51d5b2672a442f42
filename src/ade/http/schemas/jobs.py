"""Jobs as the API shows them, and what a person may send about one."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from ade.app.agent_waits import AgentWaits
from ade.app.times import rfc3339
from ade.domain.agent_pool import is_agent_pool
from ade.domain.evaluation import Evaluation
from ade.domain.job import (
    LOCAL_POOL,
    TERMINAL,
    WAITING,
    Priority,
    Status,
    StopRequest,
)
from ade.domain.queue_pause import PauseScope
from ade.http.schemas.body import RequestModel, Text, Time, Uuid, optional_time, stored_json
from ade.http.schemas.problems import Problem
from ade.stages.workers import WORKERS_LISTED_MAX
from ade.store.port import Reading
from ade.store.rows import JobRow, Lane, QueuePauseRow

AHEAD_COUNTED_MAX = 10_000
ENDED = frozenset(status.value for status in TERMINAL)
NOBODY_RUNS_IT = "No worker that is running now can run jobs of kind {kind}."
WAITS_IN_SAFE_MODE = "ADE_SAFE_MODE is enabled: no job is started."
PAUSED_BY_OPERATOR = "An operator has paused {what} since {since}: {reason}"


class WaitingReason(StrEnum):
    """Name what a job waits for."""

    CAPACITY = "capacity"
    BUILD = "build"
    LANE = "lane"
    AGENT = "agent"
    SCHEDULE = "schedule"
    SAFE_MODE = "safe_mode"
    PAUSED = "paused_by_operator"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """Hold what jobs may wait for beside each other, as the database has it now."""

    # The kinds that the workers that are running can run; none if no worker is known.
    kinds_run: Set[str] = frozenset()
    pauses: Sequence[QueuePauseRow] = ()
    # Why the one job that is looked at waits for an agent.
    agent_detail: str | None = None

    def pause_of(self, job: JobRow) -> QueuePauseRow | None:
        """Return the pause that keeps a job from starting, if there is one."""
        for row in self.pauses:
            scope = PauseScope(row.workspace_id, row.kind, row.worker)
            if scope.covers(job.workspace_id, job.kind):
                return row
        return None


class Waiting(TypedDict):
    """Why a job waits."""

    reason: WaitingReason
    detail: str
    position: int | None


class JobLimits(TypedDict):
    """What a job may use."""

    timeout_ms: int
    cpu_ms: int
    memory_mb: int
    max_output_kb: int
    max_artifacts: int


class Usage(TypedDict):
    """What a job used."""

    cpu_ms: float
    memory_mb_peak: float


class JobErrorBody(TypedDict):
    """Why a job failed."""

    category: str
    code: str
    message: str
    details: dict[str, Any]


class IssueCounts(TypedDict):
    """How many issues a run found, by severity."""

    error: int
    warning: int
    info: int


class RunCounts(TypedDict):
    """What a run counted: the tables that it found and wrote, the rows that it wrote."""

    tables: int
    tables_written: int
    rows: int
    columns_mapped: int
    issues: IssueCounts
    skipped_rows: int
    skipped: dict[str, dict[str, int]]


class Evaluated(TypedDict):
    """What a run says of its own result; null for other jobs and before the end."""

    evaluation: Evaluation | None
    counts: RunCounts | None


class Job(TypedDict):
    """One requested execution."""

    job_id: Uuid
    workspace_id: Uuid
    job_type: str
    status: Status
    priority: Priority
    target_id: str | None
    execution_key: str | None
    deduplicated: bool
    rerun_of: str | None
    attempt: int
    stop_request: StopRequest | None
    submitted_by: str
    submitted_at: Time
    started_at: Time | None
    finished_at: Time | None
    duration_ms: int | None
    waiting: Waiting | None
    limits: JobLimits
    resource_usage: Usage
    isolation: list[str]
    evaluation: Evaluation | None
    counts: RunCounts | None
    error: JobErrorBody | None
    progress: dict[str, Any] | None
    links: dict[str, str]


class JobPage(TypedDict):
    """Some jobs, newest first."""

    items: list[Job]
    next_cursor: str | None


class JobCounts(TypedDict):
    """How many jobs there are of each status."""

    counts: dict[Status, int]
    total: int


class BatchItem(TypedDict):
    """What became of one job of a batch."""

    status: int
    job: NotRequired[Job]
    problem: NotRequired[Problem]


class Batch(TypedDict):
    """What became of each job of a batch, in order."""

    items: list[BatchItem]


class Retried(TypedDict):
    """A job that runs again as a new one; `attempt` counts the runs of this work."""

    job_id: Uuid
    status: Status
    retry_of: Uuid
    attempt: int


class Attempt(TypedDict):
    """One lease of a job by one worker."""

    attempt: int
    worker: str | None
    status: str
    started_at: Time
    ended_at: Time | None
    error: dict[str, Any] | None


class AttemptPage(TypedDict):
    """All attempts of a job."""

    items: list[Attempt]
    next_cursor: None


class Target(TypedDict):
    """A lane: at most one of its jobs is live."""

    target_id: str
    queue_status: Literal["running", "paused"]
    blocking_jobs: list[Job]
    running_job: Job | None
    queued: int


class ReasonRequest(RequestModel):
    """Why it is done."""

    reason: Text | None = None


class NoteRequest(RequestModel):
    """Why it is done."""

    note: Text | None = None


class ResolveRequest(RequestModel):
    """The result that a person found."""

    result: Any
    note: Text | None = None


def job_path(slug: str, job_id: str) -> str:
    """Return the path of a job."""
    return f"/api/v1/workspaces/{slug}/jobs/{job_id}"


def job_body(
    job: JobRow,
    slug: str,
    *,
    deduplicated: bool = False,
    safe_mode: bool = False,
    waiting: Waiting | None = None,
    facts: QueueFacts | None = None,
) -> Job:
    """Show a job; `waiting` says why it waits if its position was counted (`read_waiting`).

    `facts` is what was looked up of the queue, if it was.
    """
    path = job_path(slug, job.id)
    status = Status(job.status)
    if waiting is None and status in WAITING:
        waiting = waiting_body(job, safe_mode=safe_mode, facts=facts)
    return {
        "job_id": job.id,
        "workspace_id": job.workspace_id,
        "job_type": job.kind,
        "status": status,
        "priority": Priority(job.priority),
        "target_id": job.target_id,
        "execution_key": job.execution_key,
        "deduplicated": deduplicated,
        "rerun_of": job.rerun_of,
        "attempt": job.fence,
        "stop_request": None if job.stop_request is None else StopRequest(job.stop_request),
        "submitted_by": job.submitted_by,
        "submitted_at": rfc3339(job.submitted_at),
        "started_at": optional_time(job.started_at),
        "finished_at": optional_time(job.finished_at),
        "duration_ms": duration_ms(job),
        "waiting": waiting,
        "limits": _limits(job.limits),
        "resource_usage": usage_body(job),
        "isolation": stored_json(job.isolation) or [],
        **evaluation_body(job),
        "error": stored_json(job.error),
        "progress": stored_json(job.progress),
        "links": {
            "self": path,
            "events": f"{path}/events",
            "logs": f"{path}/logs",
            "result": f"{path}/result",
            "artifact": f"{path}/artifact",
            "output": f"{path}/output",
        },
    }


def evaluation_body(job: JobRow) -> Evaluated:
    """Show what a run says of its own result."""
    return {
        "evaluation": None if job.evaluation is None else Evaluation(job.evaluation),
        "counts": stored_json(job.counts),
    }


@lru_cache(maxsize=1024)
def _limits(stored: str) -> Any:
    """Read limits; most jobs have the same ones."""
    return stored_json(stored)


def duration_ms(job: JobRow) -> int | None:
    """Return how long a job ran, if it has run and ended."""
    if job.started_at is None or job.finished_at is None:
        return None
    return (job.finished_at - job.started_at) // 1000


def usage_body(job: JobRow) -> Usage:
    """Show what a job used; nothing before it has run."""
    return {"cpu_ms": 0, "memory_mb_peak": 0, **(stored_json(job.usage) or {})}


def waiting_body(
    job: JobRow,
    *,
    safe_mode: bool,
    position: int | None = None,
    holder: JobRow | None = None,
    facts: QueueFacts | None = None,
) -> Waiting:
    """Show why a job waits; the position counts from 1, within its workspace."""
    reason, detail = _waiting_reason(job, safe_mode, holder, facts or QueueFacts())
    return {"reason": reason, "detail": detail, "position": position}


def _waiting_reason(
    job: JobRow, safe_mode: bool, holder: JobRow | None, facts: QueueFacts
) -> tuple[WaitingReason, str]:
    if safe_mode:
        return WaitingReason.SAFE_MODE, WAITS_IN_SAFE_MODE
    if job.not_before is not None:
        return WaitingReason.SCHEDULE, f"It may start at {rfc3339(job.not_before)}."
    if pause := facts.pause_of(job):
        return WaitingReason.PAUSED, _paused(pause)
    if facts.kinds_run and job.pool == LOCAL_POOL and job.kind not in facts.kinds_run:
        return WaitingReason.WORKER, NOBODY_RUNS_IT.format(kind=job.kind)
    if not job.eligible and job.target_id is not None and not job.holds_lane:
        if holder is None:
            return WaitingReason.LANE, "Other jobs of its target come first."
        return WaitingReason.LANE, f"Job {holder.id} of its target is {holder.status}."
    if not job.eligible and job.build_id is not None:
        return WaitingReason.BUILD, "Its build is not ready yet."
    if is_agent_pool(job.pool):
        return WaitingReason.AGENT, facts.agent_detail or "It waits for an agent that may take it."
    return WaitingReason.CAPACITY, "It waits for a free worker."


def read_waiting(
    reading: Reading, job: JobRow, *, safe_mode: bool, agent_waits: AgentWaits
) -> Waiting | None:
    """Find out why a job waits and how many are before it, if it does wait."""
    if Status(job.status) not in WAITING:
        return None
    position, holder = None, None
    facts = read_queue_facts(reading)
    if is_agent_pool(job.pool):
        facts = replace(facts, agent_detail=agent_waits.detail(reading, job))
    if job.eligible:
        position = reading.count_ahead(job, AHEAD_COUNTED_MAX) + 1
    elif job.target_id is not None:
        holders = reading.lane_holders(Lane(job.workspace_id, job.target_id))
        holder = next((other for other in holders if other.id != job.id), None)
    return waiting_body(job, safe_mode=safe_mode, position=position, holder=holder, facts=facts)


def read_queue_facts(reading: Reading) -> QueueFacts:
    """Read which kinds run and what is paused."""
    workers = reading.list_workers(WORKERS_LISTED_MAX)
    kinds_run = frozenset(kind for row in workers for kind in stored_json(row.kinds) or [])
    return QueueFacts(kinds_run, reading.queue_pauses.list_all())


def _paused(pause: QueuePauseRow) -> str:
    of_kind = f"jobs of kind {pause.kind}" if pause.kind else "all jobs"
    what = f"{of_kind} of this workspace" if pause.workspace_id else of_kind
    return PAUSED_BY_OPERATOR.format(what=what, since=rfc3339(pause.paused_at), reason=pause.reason)
