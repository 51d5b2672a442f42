"""The rows of jobs and of what attempts leave."""

from typing import Any, NamedTuple


class JobRow(NamedTuple):
    """Hold the columns of a job, all but its payload, its result and its log."""

    workspace_id: str
    id: str
    kind: str
    pool: str
    status: str
    eligible: int
    priority: str
    rank: int
    target_id: str | None
    holds_lane: int
    not_before: int | None
    execution_key: str | None
    rerun_of: str | None
    configuration_id: str | None
    document_id: str | None
    build_id: str | None
    fence: int
    retries_left: int
    lease_owner: str | None
    lease_expires_at: int | None
    stop_request: str | None
    event_seq: int
    submitted_by: str
    submitted_at: int
    started_at: int | None
    finished_at: int | None
    timeout_ms: int
    limits: str
    progress: str | None
    usage: str | None
    isolation: str | None
    error: str | None
    # What a run says of its own result; null for other kinds and before the end.
    evaluation: str | None = None
    counts: str | None = None


class ClaimQuery(NamedTuple):
    """Ask for eligible jobs of one workspace, to be claimed."""

    workspace_id: str
    pool: str
    limit: int
    owner: str
    now: int
    expires_at: int
    started_at: int | None
    event_type: str
    cause: str
    floor: int  # of the rank: jobs before it are skipped
    kinds: Any = None  # which the claimer can run; None: all
    timeout_ms_max: int = 1 << 62  # of the jobs: longer ones are skipped


class Claim(NamedTuple):
    """Hold a job that was just claimed: what a worker needs to run, renew and finish it."""

    workspace_id: str
    id: str
    kind: str
    fence: int
    rank: int
    target_id: str | None
    retries_left: int
    started_at: int | None
    limits: str
    payload: str
    # Where the row is in its table, if the database tells: a hint, which may be out of date.
    address: Any = None
    priority: str = "normal"


class Claimed(NamedTuple):
    """Hold the jobs that a claim took, and whether it may have passed over jobs of other kinds."""

    jobs: list[Claim]
    passed_over: bool


class JobRef(NamedTuple):
    """Name a job."""

    workspace_id: str
    id: str


class LeaseRef(NamedTuple):
    """Name an attempt: a job and the fence of the lease that the caller claims to hold."""

    workspace_id: str
    id: str
    fence: int


class Renewal(NamedTuple):
    """Extend a lease until `expires_at`."""

    workspace_id: str
    id: str
    fence: int
    expires_at: int


class Renewed(NamedTuple):
    """Hold a lease that was extended, and the stop request for its job if there is one."""

    workspace_id: str
    id: str
    fence: int
    stop_request: str | None


class Move(NamedTuple):
    """Hold the next state of a job, from the status and fence that were seen, with its event.

    The row written has no lease and no stop request: only a claim makes a job running.
    """

    workspace_id: str
    id: str
    fence: int
    source: str
    status: str
    eligible: int
    holds_lane: int
    retries_left: int
    not_before: int | None
    started_at: int | None
    finished_at: int | None
    usage: str | None
    isolation: str | None
    error: str | None
    at: int
    event_type: str
    event_data: str
    result: str | None


class FinishRow(NamedTuple):
    """Hold how a running attempt ended, now: a terminal status, and what came of it."""

    workspace_id: str
    id: str
    fence: int
    status: str
    holds_lane: int
    usage: str | None
    isolation: str | None
    error: str | None
    result: str | None
    event_data: str
    address: Any = None
    evaluation: str | None = None
    counts: str | None = None


class Moved(NamedTuple):
    """Hold a change that took place, and its position in the event log."""

    workspace_id: str
    id: str
    fence: int
    event_seq: int


class Append(NamedTuple):
    """Reserve positions in the event log of a job whose lease the caller holds."""

    workspace_id: str
    id: str
    fence: int
    places: int
    event_seq_max: int
    progress: str | None


class StopRow(NamedTuple):
    """Ask a running attempt to stop."""

    workspace_id: str
    id: str
    fence: int
    stop_request: str


class NewEvent(NamedTuple):
    """Hold an event to insert."""

    workspace_id: str
    job_id: str
    seq: int
    at: int
    type: str
    data: str


class OutputBatch(NamedTuple):
    """Hold consecutive pieces of what an attempt wrote (`ade.domain.output`).

    `seq` is the place of the last piece in the log of the job, which counts pieces from 1.
    """

    workspace_id: str
    job_id: str
    seq: int
    attempt: int
    starts: int
    ends: int
    at: int
    pieces: str


class HeldOutput(NamedTuple):
    """Hold a lease, the last place in the log of its job, and where its own output ends."""

    workspace_id: str
    id: str
    fence: int
    seq: int | None
    ends: int | None


class DroppedOutput(NamedTuple):
    """Name batches of an attempt by where they start and end."""

    workspace_id: str
    id: str
    attempt: int
    starts: int
    ends: int


class Lane(NamedTuple):
    """Name a lane."""

    workspace_id: str
    target_id: str


class Head(NamedTuple):
    """Name a job that became eligible."""

    workspace_id: str
    id: str
    pool: str


class NewExecution(NamedTuple):
    """Register a job for a piece of work: later jobs for the same work join it."""

    workspace_id: str
    execution_key: str
    job_id: str


class IdempotencyRef(NamedTuple):
    """Name a request by its idempotency key."""

    workspace_id: str
    principal: str
    endpoint: str
    key: str


class ArtifactRow(NamedTuple):
    """Hold a file that a job's result names."""

    workspace_id: str
    id: str
    job_id: str
    name: str
    digest: str
    size_bytes: int
    content_type: str
    created_at: int


class IdempotencyRow(NamedTuple):
    """Hold the answer to a request; `response_status` is None while it is being made."""

    workspace_id: str
    principal: str
    endpoint: str
    key: str
    body_digest: str
    response_status: int | None
    response_body: str | None
    job_id: str | None
    created_at: int


class LiveLease(NamedTuple):
    """Hold which job a worker or agent holds, and until when."""

    lease_owner: str
    workspace_id: str
    id: str
    kind: str
    fence: int
    lease_expires_at: int
    started_at: int | None


class QueuePauseRow(NamedTuple):
    """Hold that jobs of a workspace, of a kind, or of both do not start; None stands for all.

    Or that a worker takes no jobs: it drains.
    """

    scope: str
    workspace_id: str | None
    kind: str | None
    worker: str | None
    reason: str
    paused_by: str
    paused_at: int
