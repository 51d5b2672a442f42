"""Why a job waits for an agent, in a sentence for people: which hosts could take it, and do not."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ade.domain.agent_pool import AgentPool
from ade.domain.staleness import StalenessRule
from ade.domain.units import MICROSECONDS

NAMES_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """Hold what is known of a host that may take jobs."""

    name: str
    seen_at: int
    labels: frozenset[str] = frozenset()
    is_available: bool = True
    is_drained: bool = False
    running: int = 0
    slots: int | None = None


def why_waiting(
    pool: AgentPool, hosts: Sequence[WaitedFor], rule: StalenessRule, now_us: int
) -> str:
    """Say what a job of a pool waits for."""
    if pool.require_host:
        return _for_host(pool, hosts, rule, now_us)
    able = [host for host in hosts if set(pool.labels) <= host.labels]
    if not hosts:
        return "No agent has been heard of. Start one, or see who is there at /hosts."
    if not able:
        return f"No agent that was heard of has {_labels(pool.labels)}."
    troubles = {host.name: _trouble(host, rule, now_us) for host in able}
    if any(trouble is None for trouble in troubles.values()):
        first = f"; {pool.host} goes first" if pool.host is not None else ""
        return f"It waits until an agent that may take it asks for work{first}."
    said = [f"{name} {trouble}" for name, trouble in sorted(troubles.items())]
    more = len(said) - NAMES_SHOWN_MAX
    listed = "; ".join(said[:NAMES_SHOWN_MAX]) + (f"; and {more} more" if more > 0 else "")
    return f"No agent can take it now: {listed}."


def _for_host(pool: AgentPool, hosts: Sequence[WaitedFor], rule: StalenessRule, now_us: int) -> str:
    host = next((host for host in hosts if host.name == pool.host), None)
    if host is None:
        return f"It waits for the host {pool.host}, which has not been heard of."
    if missing := set(pool.labels) - host.labels:
        return f"It waits for the host {host.name}, which does not have {_labels(missing)}."
    trouble = _trouble(host, rule, now_us)
    if trouble is None:
        return f"It waits until the host {host.name} asks for work."
    return f"It waits for the host {host.name}, which {trouble}."


def _trouble(host: WaitedFor, rule: StalenessRule, now_us: int) -> str | None:
    """Say what keeps a host from taking jobs, if anything does."""
    if not host.is_available:
        return "is not one of AVAILABLE_HOSTS"
    silent_seconds = max(now_us - host.seen_at, 0) // MICROSECONDS
    if host.seen_at < rule.silent_before(now_us):
        return f"is away: nothing was heard of it for {silent_seconds} s"
    if not rule.is_online(host.seen_at, now_us):
        return f"is stale: nothing was heard of it for {silent_seconds} s"
    if host.is_drained:
        return "is drained: it takes no further jobs"
    if host.slots is not None and host.running >= host.slots:
        return f"is at its capacity: it runs {host.running} of {host.slots} jobs"
    return None


def _labels(labels: Collection[str]) -> str:
    return f"the label{'s' if len(labels) > 1 else ''} {', '.join(sorted(labels))}"
