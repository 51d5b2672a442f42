"""Give a job to an agent: from the pools that it serves, its own first.

The job is *dispatched*: it has a lease and a fence, and no start time until its agent reports that
it runs. The lease lasts as long as a first status may take (`ade.domain.staleness`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ade.domain.agent_pool import AgentPool
from ade.stages.claim import ClaimRequest, Rotation, claim
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import Claim

# The name, among the facts of a job, of the workers that held it before.
EARLIER_WORKERS = "earlier_workers"
EARLIER_WORKERS_MAX = 20


@dataclass(slots=True)
class Dispatch:
    """Ask for one job for an agent, from these pools in this order.

    A `fenced` agent names its attempt in each report.
    """

    agent: str
    pools: Sequence[AgentPool]
    fenced: bool = False
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
            _record(tx, found, request)
            return found
    return None


def _record(tx: Transaction, claim: Claim, request: Dispatch) -> None:
    """Begin the facts of a job anew; what earlier attempts reported was about them."""
    known = tx.agent_jobs.find(claim.id)
    before: dict[str, Any] = json.loads(known.facts) if known is not None else {}
    facts: dict[str, Any] = {"worker_id": request.agent, "attempt": claim.fence}
    if request.fenced:
        facts["fenced"] = True
    earlier = [*before.get(EARLIER_WORKERS, ()), before.get("worker_id")]
    others = [name for name in dict.fromkeys(earlier) if name not in (None, request.agent)]
    if others:
        facts[EARLIER_WORKERS] = others[-EARLIER_WORKERS_MAX:]
    tx.agent_jobs.record(claim.id, json.dumps(facts))
