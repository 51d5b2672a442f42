"""Lease arithmetic: a worker's trust always ends before the database hands its job on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.lease import LeaseRule
from ade.domain.units import MICROSECONDS

SECONDS = st.floats(0.001, 10_000, allow_nan=False)


@st.composite
def rules(draw: st.DrawFn) -> LeaseRule:
    renew, margin, slack = draw(SECONDS), draw(SECONDS), draw(SECONDS)
    return LeaseRule(renew + margin + slack, margin, renew)


@pytest.mark.parametrize(
    ("lease", "margin", "renew"), [(10, 3, 7), (10, 3, 8), (10, 10, 1), (10, 3, 0), (10, 3, -1)]
)
def test_a_rule_under_which_no_renewal_can_work_is_refused(
    lease: float, margin: float, renew: float
) -> None:
    with pytest.raises(ValueError, match="outlast"):
        LeaseRule(lease, margin, renew)


@given(rules(), st.integers(0, 10**16), st.floats(0, 1000))
def test_trust_ends_before_the_lease(rule: LeaseRule, asked_us: int, travel_seconds: float) -> None:
    """The database grants from when the request arrives, the worker counts from when it asked."""
    granted_us = asked_us + int(travel_seconds * MICROSECONDS)
    trusted = rule.trusted_until(0.0)
    expires = (rule.expires_at(granted_us) - asked_us) / MICROSECONDS
    assert trusted < expires
    assert expires - trusted >= rule.margin_seconds - 0.001


@given(rules())
def test_there_is_time_for_a_renewal_within_the_trust(rule: LeaseRule) -> None:
    assert rule.trusted_until(0.0) > rule.renew_seconds
