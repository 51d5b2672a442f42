"""The state machine, as data.

A job has one status and a few facts beside it (`stop_request`, `started_at`, the lease). Every way
from one status to another stands in `TRANSITIONS` with its cause; `docs/explanation/states.md` is
drawn from it, and no other module decides what may follow what.
"""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Name where a job is in its life; the last four are terminal."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED})
WAITING = frozenset({Status.PENDING, Status.QUEUED})
LIVE = WAITING | {Status.RUNNING, Status.PAUSED}
# On a target, a job that ended like this keeps the lane until a person decides (seed 001).
BLOCKS_ITS_LANE = frozenset({Status.PAUSED, Status.FAILED, Status.TIMED_OUT})


class Priority(StrEnum):
    """Name how soon a job wants to start, compared with others of its workspace."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class StopRequest(StrEnum):
    """Name what a person asked of a job that is running."""

    CANCEL = "cancel"
    PAUSE = "pause"


class Cause(StrEnum):
    """Name why a job changes its status."""

    ACCEPT = "accepted"
    SCHEDULE = "accepted with a start time in the future"
    DUE = "its time has come"
    CLAIM = "claimed"
    FINISH = "result recorded by the holder of the fence"
    TIMEOUT = "wall clock over its timeout"
    STOP_BEFORE_START = "stopped before start"
    STOPPED = "stop requested and the attempt ended"
    UNRUNNABLE = "its build failed, a dependency is missing, or its payload cannot be run"
    LEASE_LOST = "the lease was lost"
    RETRY = "internal error, and another attempt is left"
    RELEASE = "handed back by a worker that drains"
    RESUME = "resumed"
    CANCEL_PAUSED = "cancelled while paused"
    RESOLVE = "resolved by an operator with a result"


@dataclass(frozen=True, slots=True)
class Transition:
    """Hold one allowed step; `source` is None for the step that creates the job."""

    source: Status | None
    target: Status
    cause: Cause


def _steps(
    sources: tuple[Status | None, ...], targets: tuple[Status, ...], cause: Cause
) -> list[Transition]:
    return [Transition(source, target, cause) for source in sources for target in targets]


_S = Status
TRANSITIONS: tuple[Transition, ...] = (
    *_steps((None,), (_S.PENDING,), Cause.SCHEDULE),
    *_steps((None,), (_S.QUEUED,), Cause.ACCEPT),
    *_steps((_S.PENDING,), (_S.QUEUED,), Cause.DUE),
    *_steps((_S.QUEUED,), (_S.RUNNING,), Cause.CLAIM),
    *_steps((_S.QUEUED, _S.PENDING), (_S.CANCELLED, _S.PAUSED), Cause.STOP_BEFORE_START),
    *_steps((_S.QUEUED,), (_S.FAILED,), Cause.UNRUNNABLE),
    *_steps((_S.RUNNING,), (_S.SUCCEEDED, _S.FAILED), Cause.FINISH),
    *_steps((_S.RUNNING,), (_S.TIMED_OUT,), Cause.TIMEOUT),
    *_steps((_S.RUNNING,), (_S.CANCELLED, _S.PAUSED), Cause.STOPPED),
    *_steps((_S.RUNNING,), (_S.QUEUED,), Cause.RETRY),
    *_steps((_S.RUNNING,), (_S.QUEUED,), Cause.RELEASE),
    *_steps((_S.RUNNING,), (_S.QUEUED, _S.FAILED), Cause.LEASE_LOST),
    *_steps((_S.PAUSED,), (_S.QUEUED,), Cause.RESUME),
    *_steps((_S.PAUSED,), (_S.CANCELLED,), Cause.CANCEL_PAUSED),
    *_steps((_S.FAILED, _S.TIMED_OUT), (_S.QUEUED,), Cause.RESUME),
    *_steps((_S.PAUSED, _S.FAILED, _S.TIMED_OUT), (_S.SUCCEEDED,), Cause.RESOLVE),
)

_ALLOWED = frozenset((step.source, step.target) for step in TRANSITIONS)


def may_follow(source: Status | None, target: Status) -> bool:
    """Tell whether the table has a step from `source` to `target`."""
    return (source, target) in _ALLOWED


def mermaid() -> str:
    """Draw the table as a Mermaid state diagram, for the docs."""
    causes: dict[tuple[str, str], list[str]] = {}
    for step in TRANSITIONS:
        edge = (step.source.value if step.source else "[*]", step.target.value)
        causes.setdefault(edge, []).append(step.cause.value)
    edges = [
        f"  {source} --> {target}: {' / '.join(reasons)}"
        for (source, target), reasons in causes.items()
    ]
    ends = [f"  {status.value} --> [*]" for status in Status if status in TERMINAL]
    return "\n".join(["stateDiagram-v2", "  direction LR", *edges, *ends])
