"""What the settings say to the stages: queueing, leases, retention."""

from dataclasses import dataclass, field

from ade.domain.lease import LeaseRule
from ade.domain.staleness import StalenessRule
from ade.domain.units import MICROSECONDS
from ade.stages.drain_meter import DrainMeter

DEFAULT_LEASE = LeaseRule(lease_seconds=15, margin_seconds=3, renew_seconds=3)


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """Hold what the stages need of the settings, and the meter that they share."""

    lease: LeaseRule = DEFAULT_LEASE
    # The same for jobs that agents hold by the worker contract.
    staleness: StalenessRule = field(default_factory=StalenessRule)
    queue_size: int = 10
    workspace_queue_size: int = 0
    agent_queue_size: int = 0
    safe_mode: bool = False
    ageing_seconds: float = 300
    events_per_job_max: int = 10_000
    idempotency_ttl_seconds: float = 24 * 3600
    retain_seconds: float = 30 * 24 * 3600
    # A worker enforces the timeout itself, from the start of the code. The sweep overrules one that
    # did not, this much later: longer than a job may be prepared (`PREPARE_SECONDS_MAX`), its
    # interpreter started (`START_SECONDS_MAX`) and its files kept.
    overdue_grace_seconds: float = 1800
    # What agents of the worker contract run; they do not say it.
    contract_kinds: frozenset[str] = frozenset({"container"})
    drain_meter: DrainMeter = field(default_factory=DrainMeter)

    @property
    def overdue_grace_us(self) -> int:
        """Return the grace in the unit of the database."""
        return int(self.overdue_grace_seconds * MICROSECONDS)
