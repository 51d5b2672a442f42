"""Find out why a job waits for an agent."""

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from ade.clock import Clock
from ade.domain.agent_pool import AgentPool
from ade.domain.agent_waiting import WaitedFor, why_waiting
from ade.domain.staleness import StalenessRule
from ade.stages.queue_pauses import paused_scopes
from ade.store.port import Reading
from ade.store.rows import HostRow, JobRow


class AgentWaits:
    """Say why jobs wait, from what is stored of the hosts."""

    def __init__(self, rule: StalenessRule, clock: Clock, available: Collection[str]) -> None:
        self._rule = rule
        self._clock = clock
        self._available = available

    def detail(self, reading: Reading, job: JobRow) -> str:
        """Say why a job that waits for an agent waits."""
        pool = reading.agent_jobs.pool(job.pool) or AgentPool()
        drained = {scope.worker for scope in paused_scopes(reading)}
        running = Counter(held.lease_owner for held in reading.agent_jobs.held())
        hosts = [
            self._host(row, running[row.name], is_drained=row.name in drained)
            for row in reading.agent_jobs.hosts()
        ]
        return why_waiting(pool, hosts, self._rule, self._clock.now_us())

    def _host(self, row: HostRow, running: int, *, is_drained: bool) -> WaitedFor:
        info: dict[str, Any] = json.loads(row.info)
        slots, labels = info.get("slots"), info.get("labels")
        return WaitedFor(
            row.name,
            row.seen_at,
            frozenset(map(str, labels)) if isinstance(labels, list) else frozenset(),
            is_available=not self._available or row.name in self._available,
            is_drained=is_drained or info.get("draining") is True,
            running=running,
            slots=slots if isinstance(slots, int) and not isinstance(slots, bool) else None,
        )
