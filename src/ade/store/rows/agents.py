"""The rows of agents, their hosts and their jobs."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ade.store.rows.jobs import JobRow


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


@dataclass(frozen=True, slots=True)
class NewAgentKey:
    """Hold an agent with its new key, which is shown once and never stored, and its code."""

    agent: AgentRow
    key: str = field(repr=False)
    code: str | None = field(default=None, repr=False)
