"""When a job of an agent is given up: the four settings of the worker contract, as one function.

The model. An agent holds a job by its last word about it. A claim without a first status lasts
`claim_ttl`; a status lasts `status_ttl`, and so does a heartbeat that lists the job as active. An
agent from which nothing at all arrives for `heartbeat_ttl` is offline; after the further `grace`
its jobs are given up, whatever their statuses say.

    what is given up                              what becomes of the job
    --------------------------------------------  -------------------------------------------
    dispatched: no status came after the claim    queued again: nothing of it has run
    running, also with a stop requested           failed: whether it ran to its end is unknown

The rule about time. All times are the database's. What servers heard of agents is written there
within `note_seconds`, so an agent is known to be silent only that much later. A server that has
just started, or whose clock was stepped, gives up no job until every agent had the time to speak
(`settling_seconds`), so that a server that was away fails nobody's work.
"""

from dataclasses import dataclass
from enum import StrEnum

from ade.domain.units import MICROSECONDS

NOTE_SECONDS_MAX = 10.0


class Verdict(StrEnum):
    """Name what is to become of a job that an agent holds."""

    KEEP = "keep"
    REQUEUE = "requeue"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class StalenessRule:
    """Hold the four settings, in seconds."""

    claim_ttl_seconds: float = 60
    heartbeat_ttl_seconds: float = 60
    grace_seconds: float = 30
    status_ttl_seconds: float = 300

    @property
    def note_seconds(self) -> float:
        """Return how often servers write down which agents they heard."""
        return min(self.heartbeat_ttl_seconds / 4, NOTE_SECONDS_MAX)

    @property
    def settling_seconds(self) -> float:
        """Return how long a server waits after its start before it gives up jobs."""
        return self.heartbeat_ttl_seconds + self.grace_seconds + self.note_seconds

    def claim_expires_at(self, now_us: int) -> int:
        """Return until when a first status must arrive after a claim."""
        return now_us + int(self.claim_ttl_seconds * MICROSECONDS)

    def status_expires_at(self, now_us: int) -> int:
        """Return until when the next status must arrive."""
        return now_us + int(self.status_ttl_seconds * MICROSECONDS)

    def is_online(self, seen_at: int, now_us: int) -> bool:
        """Tell whether an agent counts as online."""
        return now_us - seen_at <= int(self.heartbeat_ttl_seconds * MICROSECONDS)

    def silent_before(self, now_us: int) -> int:
        """Return the time since which an agent must have spoken for its jobs to be kept."""
        return now_us - int(self.settling_seconds * MICROSECONDS)


def verdict(
    rule: StalenessRule, now_us: int, *, may_have_run: bool, expires_at: int, seen_at: int | None
) -> Verdict:
    """Decide about a job by when its status expires, and by when its agent was last seen."""
    is_stale = expires_at < now_us
    is_gone = seen_at is not None and seen_at < rule.silent_before(now_us)
    if not (is_stale or is_gone):
        return Verdict.KEEP
    return Verdict.FAIL if may_have_run else Verdict.REQUEUE
