"""The rows that statements take and return, as named tuples."""

import json
from dataclasses import dataclass, field
from enum import Enum
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


class WorkerRow(NamedTuple):
    """Hold a worker that is running, and as a JSON list the kinds that it can run.

    `slots` is 0 while it drains. `drains_at` is when it will begin to, if it has a wall time, and
    `block` the order to an engine that started it.
    """

    name: str
    host: str
    kinds: str
    started_at: int
    last_seen_at: int
    slots: int = 0
    drains_at: int | None = None
    block: str | None = None


class ScalerRow(NamedTuple):
    """Hold a scaler: which process decides, until when, and as JSON what it last saw and did."""

    name: str
    engine: str
    owner: str | None
    lease_expires_at: int | None
    seen_at: int
    state: str


class BlockRow(NamedTuple):
    """Hold a block: what became of one order to an engine."""

    name: str
    scaler: str
    engine_id: str | None
    status: str
    detail: str
    ordered_at: int
    started_at: int | None
    registered_at: int | None
    left_at: int | None
    finished_at: int | None


class Backlog(NamedTuple):
    """Count the jobs of a kind that wait for a worker, with the age and timeouts of them.

    `fits` is 1 for jobs whose timeout is within a limit.
    """

    kind: str
    fits: int
    jobs: int
    oldest_at: int
    timeout_ms: int


class AgentJobRow(NamedTuple):
    """Hold what the worker contract knows of a job beside its state; `facts` is JSON."""

    job_id: str
    workspace_id: str
    job_name: str
    pool: str
    facts: str
    reported_at: int


class AgentJob(NamedTuple):
    """Hold a job with what the worker contract knows of it."""

    job: JobRow
    known: AgentJobRow


class AgentJobVersion(NamedTuple):
    """Tell one state of a job of an agent from another."""

    job_id: str
    workspace_id: str
    event_seq: int
    reported_at: int
    finished_at: int | None


class AgentPoolRow(NamedTuple):
    """Hold what the jobs of a pool of agents ask for; `labels` is a JSON list."""

    name: str
    host: str | None
    require_host: int
    labels: str


class HeldJob(NamedTuple):
    """Hold what an agent must know of a job that it holds."""

    workspace_id: str
    id: str
    fence: int
    lease_owner: str
    stop_request: str | None
    started_at: int | None


class StaleJob(NamedTuple):
    """Hold a job of an agent that may have to be given up, and when the agent was last seen."""

    job: JobRow
    seen_at: int | None


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


class HostRow(NamedTuple):
    """Hold a host that was heard of; `info` is the JSON of its last heartbeat."""

    name: str
    first_seen_at: int
    seen_at: int
    asked_at: int | None
    beat_at: int | None
    info: str


class AgentRow(NamedTuple):
    """Hold an agent that was enrolled; `labels` is a JSON list."""

    id: str
    name: str
    labels: str
    key_digest: str | None
    old_key_digest: str | None
    old_key_expires_at: int | None
    code_digest: str | None
    code_expires_at: int | None
    created_at: int
    rotated_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None


class EnvironmentArchive(NamedTuple):
    """Hold where the archive of an environment is, and what the environment was made of."""

    environment: str
    archive: str
    archive_bytes: int
    installed_bytes: int
    interpreter: str
    installer: str
    source_builds: int
    lock: str
    created_at: int
    used_at: int


@dataclass(frozen=True, slots=True)
class NewAgentKey:
    """Hold an agent with its new key, which is shown once and never stored, and its code."""

    agent: AgentRow
    key: str = field(repr=False)
    code: str | None = field(default=None, repr=False)


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


class Document(NamedTuple):
    """Hold an uploaded file."""

    workspace_id: str
    id: str
    name: str
    digest: str
    size_bytes: int
    created_at: int
    content_type: str | None
    deleted_at: int | None


class Configuration(NamedTuple):
    """Hold a configuration."""

    workspace_id: str
    id: str
    name: str
    created_at: int
    deleted_at: int | None


class File(NamedTuple):
    """Hold one file of a draft or of a version."""

    path: str
    digest: str
    size_bytes: int


class Version(NamedTuple):
    """Hold what a configuration was at one moment."""

    workspace_id: str
    id: str
    configuration_id: str
    sequence: int
    digest: str
    manifest: str
    created_by: str
    created_at: int

    @property
    def files(self) -> list[File]:
        """Return its files in the order of their paths."""
        return [File(*entry) for entry in json.loads(self.manifest)]


class Build(NamedTuple):
    """Hold a prepared environment, or the request for one.

    `job_id` is None if there was nothing to do. While the build is not settled, `status`, `attempt`
    and `started_at` are what its job says.
    """

    workspace_id: str
    id: str
    configuration_id: str
    fingerprint: str
    status: str
    error: str | None
    created_at: int
    started_at: int | None
    finished_at: int | None
    version_id: str | None
    environment: str | None
    job_id: str | None
    attempt: int = 0


class BuildVersion(NamedTuple):
    """Name the version that a build was made of."""

    id: str
    sequence: int
    digest: str


class Activation(NamedTuple):
    """Hold which version of a configuration is active, and which one is to become it."""

    workspace_id: str
    configuration_id: str
    version_id: str | None = None
    activated_at: int | None = None
    activated_by: str | None = None
    pending_version_id: str | None = None
    pending_by: str | None = None


class RunParts(NamedTuple):
    """Hold what exists of the parts of a run; what is missing has to be made."""

    document: Document
    version: Version
    build: Build | None


class Workspace(NamedTuple):
    """Hold a workspace."""

    id: str
    slug: str
    name: str
    created_at: int


class Member(NamedTuple):
    """Hold a user's role in a workspace."""

    user_id: str
    name: str
    role: str
    created_at: int


class ApiKey(NamedTuple):
    """Hold what is known of an API key: everything but its secret."""

    id: str
    label: str
    role: str | None
    user_id: str
    user_name: str
    created_at: int
    revoked_at: int | None


class KeyHolder(NamedTuple):
    """Hold the user that an API key authenticates, and what the key allows."""

    key_id: str
    user_id: str
    user_name: str
    operator: bool
    workspace_id: str | None
    role: str | None
    roles: dict[str, str]


class NewKey(NamedTuple):
    """Hold a new API key with its secret, which is shown once and never stored."""

    key: ApiKey
    secret: str


class UserSession(NamedTuple):
    """Hold what is known of a browser's session: everything but its token."""

    id: str
    user_id: str
    user_name: str
    key_id: str
    client: str
    created_at: int
    last_seen_at: int
    expires_at: int


class NewUserSession(NamedTuple):
    """Hold a new session with its token, which the browser gets and which is never stored."""

    session: UserSession
    token: str


class LinkState(Enum):
    """Tell whether a one-time link can be used."""

    USABLE = "usable"
    USED = "used"
    EXPIRED = "expired"
    UNKNOWN = "unknown"
