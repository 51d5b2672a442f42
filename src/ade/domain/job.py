"""The state machine, as data.

A job has one status and a few facts beside it (`stop_request`, `started_at`, the lease). Every
allowed change of status is in `TRANSITIONS` with its cause, and `ade.stages.transitions` refuses
all others. `docs/explanation/states.md` is generated from this table.

Whether a queued job is *eligible*, so that it may be claimed, is not a status. A queued job that
waited for a time or for a build stays queued when the wait ends; the causes of that are in
`WAIT_ENDS`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


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
# On a target, a job that ended like this keeps the lane until a person decides.
BLOCKS_ITS_LANE = frozenset({Status.PAUSED, Status.FAILED, Status.TIMED_OUT})


# Which workers may claim a job: those of the servers, or an agent on another host.
LOCAL_POOL = "local"
AGENT_POOL = "agent"


class Priority(StrEnum):
    """Name how soon a job wants to start, compared with others of its workspace."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class StopRequest(StrEnum):
    """Name what a person asked of a job that is running."""

    CANCEL = "cancel"
    PAUSE = "pause"


# Where a stop request leads once the attempt is over.
STOPPED_STATUS = {StopRequest.CANCEL: Status.CANCELLED, StopRequest.PAUSE: Status.PAUSED}


class Cause(StrEnum):
    """Name why a job changes its status: the word in the event log, and what it means."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """Make a member whose value is the word."""
        cause = str.__new__(cls, word)
        cause._value_ = word
        cause.meaning = meaning
        return cause

    ACCEPTED = "accepted", "accepted"
    SCHEDULED = "scheduled", "accepted with a start time in the future"
    DUE = "due", "its time has come"
    BUILD_READY = "build_ready", "the build that it waited for is ready"
    CLAIMED = "claimed", "claimed by a worker"
    FINISHED = "finished", "its result was recorded by the holder of the fence"
    TIMEOUT = "timeout", "it ran longer than its timeout"
    STOPPED_BEFORE_START = "stopped_before_start", "cancelled or paused before it started"
    STOPPED = "stopped", "a stop was requested and the attempt ended"
    UNRUNNABLE = (
        "unrunnable",
        "its build failed, a dependency is missing, or its payload cannot be run",
    )
    LEASE_LOST = "lease_lost", "the lease was lost"
    RETRIED = "retried", "it failed with INTERNAL_ERROR, and another attempt is left"
    RELEASED = "released", "handed back by a worker that shuts down"
    RESUMED = "resumed", "resumed by a person"
    CANCELLED_WHILE_PAUSED = "cancelled_while_paused", "cancelled while it was paused"
    RESOLVED = "resolved", "resolved by a person, who gave the result"
    FORCED = "forced", "forced by an operator, although the table does not allow it"


@dataclass(frozen=True, slots=True)
class Transition:
    """Hold one allowed change of status; `source` is None for the one that creates the job."""

    source: Status | None
    target: Status
    cause: Cause


def _transitions(
    sources: tuple[Status | None, ...], targets: tuple[Status, ...], cause: Cause
) -> list[Transition]:
    return [Transition(source, target, cause) for source in sources for target in targets]


_S = Status
TRANSITIONS: tuple[Transition, ...] = (
    *_transitions((None,), (_S.PENDING,), Cause.SCHEDULED),
    *_transitions((None,), (_S.QUEUED,), Cause.ACCEPTED),
    *_transitions((_S.PENDING,), (_S.QUEUED,), Cause.DUE),
    *_transitions((_S.QUEUED,), (_S.RUNNING,), Cause.CLAIMED),
    *_transitions((_S.QUEUED, _S.PENDING), (_S.CANCELLED, _S.PAUSED), Cause.STOPPED_BEFORE_START),
    *_transitions((_S.QUEUED,), (_S.FAILED,), Cause.UNRUNNABLE),
    *_transitions((_S.RUNNING,), (_S.SUCCEEDED, _S.FAILED), Cause.FINISHED),
    *_transitions((_S.RUNNING,), (_S.TIMED_OUT,), Cause.TIMEOUT),
    *_transitions((_S.RUNNING,), (_S.CANCELLED, _S.PAUSED), Cause.STOPPED),
    *_transitions((_S.RUNNING,), (_S.QUEUED,), Cause.RETRIED),
    *_transitions((_S.RUNNING,), (_S.QUEUED,), Cause.RELEASED),
    *_transitions((_S.RUNNING,), (_S.QUEUED, _S.FAILED), Cause.LEASE_LOST),
    *_transitions((_S.PAUSED,), (_S.QUEUED,), Cause.RESUMED),
    *_transitions((_S.PAUSED,), (_S.CANCELLED,), Cause.CANCELLED_WHILE_PAUSED),
    *_transitions((_S.FAILED, _S.TIMED_OUT), (_S.QUEUED,), Cause.RESUMED),
    *_transitions((_S.PAUSED, _S.FAILED, _S.TIMED_OUT), (_S.SUCCEEDED,), Cause.RESOLVED),
)
# The status stays: what a queued job waited for has come, and it may have become eligible.
WAIT_ENDS: tuple[Transition, ...] = (
    Transition(_S.QUEUED, _S.QUEUED, Cause.DUE),
    Transition(_S.QUEUED, _S.QUEUED, Cause.BUILD_READY),
)
_ALLOWED = frozenset((one.source, one.target, one.cause) for one in (*TRANSITIONS, *WAIT_ENDS))


def is_allowed(source: Status | None, target: Status, cause: Cause) -> bool:
    """Tell whether a job may go from `source` to `target` for this cause.

    An operator may force any change except to `running`: only a claim gives a job a lease.
    """
    if cause is Cause.FORCED:
        return source not in (None, target) and target is not Status.RUNNING
    return (source, target, cause) in _ALLOWED


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
