"""What a person reads of a job that waits for an agent."""

import pytest

from ade.domain.agent_pool import AgentPool
from ade.domain.agent_waiting import WaitedFor, why_waiting
from ade.domain.staleness import StalenessRule
from ade.domain.units import MICROSECONDS

NOW = 1_000_000 * MICROSECONDS
RULE = StalenessRule(heartbeat_ttl_seconds=60, grace_seconds=30)


def host(name: str = "near", silent_seconds: float = 1, *labels: str, **more: object) -> WaitedFor:
    seen_at = NOW - int(silent_seconds * MICROSECONDS)
    return WaitedFor(name, seen_at, frozenset(labels), **more)  # type: ignore[arg-type]


def said(pool: AgentPool, *hosts: WaitedFor) -> str:
    return why_waiting(pool, hosts, RULE, NOW)


NEAR = AgentPool.of("near", require_host=True)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (host("far"), "near, which has not been heard of."),
        (host(silent_seconds=61), "which is stale: nothing was heard of it for 61 s."),
        (host(silent_seconds=200), "which is away: nothing was heard of it for 200 s."),
        (host(is_drained=True), "which is drained: it takes no further jobs."),
        (host(running=2, slots=2), "which is at its capacity: it runs 2 of 2 jobs."),
        (host(is_available=False), "which is not one of AVAILABLE_HOSTS."),
        (host(running=1, slots=2), "It waits until the host near asks for work."),
    ],
)
def test_a_required_host_is_named_with_what_is_wrong(known: WaitedFor, words: str) -> None:
    assert said(NEAR, known).endswith(words)


def test_a_required_host_without_the_label() -> None:
    pool = AgentPool.of("near", ["gpu"], require_host=True)
    assert said(pool, host()).endswith("near, which does not have the label gpu.")


def test_any_agent_will_do() -> None:
    pool = AgentPool()
    assert said(pool).startswith("No agent has been heard of.")
    assert said(pool, host()) == "It waits until an agent that may take it asks for work."
    full = said(pool, host(running=1, slots=1), host("far", 200))
    assert full == (
        "No agent can take it now: far is away: nothing was heard of it for 200 s;"
        " near is at its capacity: it runs 1 of 1 jobs."
    )


def test_one_host_that_is_free_is_enough() -> None:
    assert "asks for work" in said(AgentPool(), host("a", 500), host("b"))


def test_labels_that_nobody_has() -> None:
    pool = AgentPool.of(None, ["gpu", "big"], require_host=False)
    assert said(pool, host("near", 1, "gpu")) == (
        "No agent that was heard of has the labels big, gpu."
    )


def test_not_all_hosts_are_listed() -> None:
    away = [host(f"h{number}", 500) for number in range(9)]
    assert said(AgentPool(), *away).endswith("; and 6 more.")


def test_a_preferred_host_is_named() -> None:
    pool = AgentPool.of("far", require_host=False)
    assert said(pool, host()).endswith("asks for work; far goes first.")
