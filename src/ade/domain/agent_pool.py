"""Which agents may claim a job: a pool for each combination of host and labels that jobs ask for.

A job that asks for nothing waits in the pool `agent`, which every agent serves. One that names a
host or labels waits in a pool of its own, so jobs that wait for a host that is away cost the claims
of the others nothing. A preferred host that is not required goes first: the other agents take its
jobs only while it does not ask for work.
"""

import hashlib
import json
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass

from ade.domain.job import AGENT_POOL

# A pool's name is a short word: the digest of what the jobs ask for stands for it.
DIGEST_CHARS = 14


@dataclass(frozen=True, slots=True)
class AgentPool:
    """Hold what the jobs of a pool ask of the agent that runs them."""

    host: str | None = None
    require_host: bool = False
    labels: tuple[str, ...] = ()

    @staticmethod
    def of(host: str | None, labels: Collection[str] = (), *, require_host: bool) -> "AgentPool":
        """Return the pool of jobs that ask for this; the order of labels does not matter."""
        return AgentPool(host, require_host and host is not None, tuple(sorted(set(labels))))

    @property
    def name(self) -> str:
        """Return the name of the pool, as the rows of its jobs hold it."""
        if self.host is None and not self.labels:
            return AGENT_POOL
        asked = json.dumps([self.host, self.require_host, self.labels])
        return f"{AGENT_POOL}:{hashlib.sha256(asked.encode()).hexdigest()[:DIGEST_CHARS]}"

    def serves(self, agent: str, labels: Collection[str], asking: Container[str]) -> bool:
        """Tell whether an agent may take jobs of this pool; `asking` are those that want work."""
        if not set(self.labels) <= set(labels):
            return False
        if self.host is None or self.host == agent:
            return True
        return not self.require_host and self.host not in asking


def is_agent_pool(pool: str) -> bool:
    """Tell whether the jobs of a pool are run by agents."""
    return pool.partition(":")[0] == AGENT_POOL


def in_order(pools: Sequence[AgentPool], agent: str) -> list[AgentPool]:
    """Put the pools that an agent may claim from in order: first those that name it."""
    return sorted(pools, key=lambda pool: (pool.host != agent, pool.host is not None, pool.name))
