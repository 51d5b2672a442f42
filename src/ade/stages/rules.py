"""The numbers that the stages go by."""

from dataclasses import dataclass, field

from ade.domain.lease import MICROSECONDS, LeaseRule
from ade.stages.drain_meter import DrainMeter

LOCAL = "local"
AGENT = "agent"
# News goes by topics. Of a job it is the job's id: there are too many to spell a name for each.
WORK = "work"


def work_topic(pool: str) -> str:
    """Name the news that a pool has something to claim."""
    return f"{WORK}:{pool}"


def stop_topic(owner: str) -> str:
    """Name the news that a worker is asked to stop something."""
    return f"stop:{owner}"


DEFAULT_LEASE = LeaseRule(lease_seconds=15, margin_seconds=3, renew_seconds=3)


@dataclass(frozen=True, slots=True)
class Rules:
    """Hold what the settings say about queueing, leases and retention."""

    lease: LeaseRule = DEFAULT_LEASE
    queue_size: int = 10
    workspace_queue_size: int = 0
    safe_mode: bool = False
    ageing_seconds: float = 300
    events_per_job_max: int = 10_000
    idempotency_ttl_seconds: float = 24 * 3600
    retain_seconds: float = 30 * 24 * 3600
    # A worker enforces the timeout itself; only one that forgot to is overruled, this much later.
    overdue_grace_seconds: float = 30
    drained: DrainMeter = field(default_factory=DrainMeter)

    @property
    def overdue_grace_us(self) -> int:
        """Return the grace in the unit of the database."""
        return int(self.overdue_grace_seconds * MICROSECONDS)
