"""Give a job to an agent: from the pools that it serves, its own first.

The job is *dispatched*: it has a lease and a fence, and no start time until its agent reports that
it runs. The lease lasts as long as a first status may take (`ade.domain.staleness`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ade.domain.agent_pool import AgentPool
from ade.stages.claim import ClaimRequest, Rotation, claim
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import Claim


@dataclass(slots=True)
class Dispatch:
    """Ask for one job for an agent, from these pools in this order."""

    agent: str
    pools: Sequence[AgentPool]
    rotation: Rotation = field(default_factory=Rotation)


def dispatch(
    settings: KernelSettings, tx: Transaction, requests: list[Dispatch]
) -> list[Claim | None]:
    """Give each agent a job, if there is one that it may take."""
    return [_dispatch(settings, tx, request) for request in requests]


def _dispatch(settings: KernelSettings, tx: Transaction, request: Dispatch) -> Claim | None:
    for pool in request.pools:
        wanted = ClaimRequest(request.agent, 1, pool.name, request.rotation)
        [claims] = claim(settings, tx, [wanted])
        for found in claims:
            known = {"worker_id": request.agent, "attempt": found.fence}
            tx.agent_jobs.record(found.id, json.dumps(known))
            return found
    return None
