"""What operators see of the workers and what they paused, and the bodies of their acts."""

from typing import Annotated

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.http.schemas.body import RequestModel, Time, Uuid, optional_time, stored_json
from ade.store.rows import LiveLease, QueuePauseRow, WorkerRow

Reason = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]
KindName = Annotated[str, StringConstraints(min_length=1, max_length=63)]
WorkerName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ForceRequest(RequestModel):
    """Why an operator changes a job, and whether it is changed in any state."""

    reason: Reason
    force: bool = Field(
        False,
        description="Change it in any state. Its code may still run, beside the next attempt.",
    )


class PauseRequest(RequestModel):
    """Which jobs are not to start; without a workspace and a kind: all."""

    workspace: str | None = Field(None, max_length=63, description="Slug or id of a workspace.")
    kind: KindName | None = None
    reason: Reason


class ResumeRequest(RequestModel):
    """What was paused: the same workspace and kind as in the pause."""

    workspace: str | None = Field(None, max_length=63, description="Slug or id of a workspace.")
    kind: KindName | None = None


class DrainRequest(RequestModel):
    """Which worker is to take no more jobs."""

    worker: WorkerName
    reason: Reason


class UndrainRequest(RequestModel):
    """Which worker may take jobs again."""

    worker: WorkerName


class LeaseBody(TypedDict):
    """A job that a worker holds."""

    job_id: Uuid
    workspace_id: Uuid
    job_type: str
    attempt: int
    started_at: Time | None
    lease_expires_at: Time


class WorkerBody(TypedDict):
    """A worker that is running; an agent of another host has no kinds and slots."""

    name: str
    host: str
    kinds: list[str]
    slots: int
    block: str | None
    started_at: Time
    last_seen_at: Time
    drains_at: Time | None
    drained: "PauseBody | None"
    leases: list[LeaseBody]


class WorkerPage(TypedDict):
    """The workers, by name, and the leases whose holders are not among them."""

    items: list[WorkerBody]
    leases_of_others: list[LeaseBody]
    next_cursor: None


class PauseBody(TypedDict):
    """What does not start, since when, and why."""

    workspace_id: Uuid | None
    kind: str | None
    worker: str | None
    reason: str
    paused_by: str
    paused_at: Time


class PausePage(TypedDict):
    """What is paused."""

    items: list[PauseBody]
    next_cursor: None


def pause_body(pause: QueuePauseRow) -> PauseBody:
    """Show a pause."""
    return {
        "workspace_id": pause.workspace_id,
        "kind": pause.kind,
        "worker": pause.worker,
        "reason": pause.reason,
        "paused_by": pause.paused_by,
        "paused_at": rfc3339(pause.paused_at),
    }


def lease_body(lease: LiveLease) -> LeaseBody:
    """Show a lease."""
    return {
        "job_id": lease.id,
        "workspace_id": lease.workspace_id,
        "job_type": lease.kind,
        "attempt": lease.fence,
        "started_at": optional_time(lease.started_at),
        "lease_expires_at": rfc3339(lease.lease_expires_at),
    }


def worker_body(
    worker: WorkerRow, leases: list[LiveLease], drained: QueuePauseRow | None
) -> WorkerBody:
    """Show a worker with what it holds."""
    return {
        "name": worker.name,
        "host": worker.host,
        "kinds": stored_json(worker.kinds) or [],
        "slots": worker.slots,
        "block": worker.block,
        "started_at": rfc3339(worker.started_at),
        "last_seen_at": rfc3339(worker.last_seen_at),
        "drains_at": optional_time(worker.drains_at),
        "drained": None if drained is None else pause_body(drained),
        "leases": [lease_body(lease) for lease in leases],
    }
