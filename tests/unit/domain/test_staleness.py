"""When a job of an agent is given up: each of the four settings by itself."""

import pytest

from ade.domain.staleness import StalenessRule, Verdict, verdict
from ade.domain.units import MICROSECONDS

RULE = StalenessRule(
    claim_ttl_seconds=10, heartbeat_ttl_seconds=20, grace_seconds=5, status_ttl_seconds=100
)
NOW = 1_000 * MICROSECONDS


def after(seconds: float, *, expires_at: int, may_have_run: bool, heard: float = 0) -> Verdict:
    """Decide some time after NOW, about an agent that was last heard of at another."""
    return verdict(
        RULE,
        NOW + int(seconds * MICROSECONDS),
        may_have_run=may_have_run,
        expires_at=expires_at,
        seen_at=NOW + int(heard * MICROSECONDS),
    )


def test_a_claim_without_a_status_is_taken_back() -> None:
    until = RULE.claim_expires_at(NOW)
    assert after(10, expires_at=until, may_have_run=False, heard=10) is Verdict.KEEP
    assert after(10.1, expires_at=until, may_have_run=False, heard=10) is Verdict.REQUEUE


def test_a_status_lasts_so_long() -> None:
    until = RULE.status_expires_at(NOW)
    assert after(100, expires_at=until, may_have_run=True, heard=100) is Verdict.KEEP
    assert after(100.1, expires_at=until, may_have_run=True, heard=100) is Verdict.FAIL


@pytest.mark.parametrize(
    ("may_have_run", "becomes"), [(True, Verdict.FAIL), (False, Verdict.REQUEUE)]
)
def test_a_silent_agent_loses_its_jobs_whatever_they_said(
    may_have_run: bool, becomes: Verdict
) -> None:
    far = NOW + 10_000 * MICROSECONDS
    # Heartbeat, grace, and the time that servers take to write down what they heard.
    silent = RULE.heartbeat_ttl_seconds + RULE.grace_seconds + RULE.note_seconds
    assert after(silent, expires_at=far, may_have_run=may_have_run) is Verdict.KEEP
    assert after(silent + 0.1, expires_at=far, may_have_run=may_have_run) is becomes


def test_an_agent_that_was_never_heard_of_is_judged_by_its_statuses() -> None:
    until = RULE.status_expires_at(NOW)
    kept = verdict(RULE, NOW, may_have_run=True, expires_at=until, seen_at=None)
    assert kept is Verdict.KEEP


def test_what_was_heard_is_written_down_often_enough() -> None:
    assert RULE.note_seconds == 5
    assert StalenessRule(heartbeat_ttl_seconds=3600).note_seconds == 10
