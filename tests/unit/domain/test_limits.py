"""Limits: what is requested, checked against the quota."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.errors import LimitExceedsQuota
from ade.domain.limits import Limits, resolve_limits

NAMES = [field.name for field in fields(Limits)]
QUOTA = Limits(300_000, 60_000, 512, 1024, 100)
DEFAULT = Limits(30_000, 30_000, 512, 256, 50)


def test_a_job_without_limits_gets_the_default() -> None:
    assert resolve_limits({}, DEFAULT, QUOTA) == DEFAULT


@pytest.mark.parametrize("name", NAMES)
def test_requested_limits_within_the_quota_are_granted(name: str) -> None:
    for value in (1, getattr(QUOTA, name)):
        given_ = resolve_limits({name: value}, DEFAULT, QUOTA)
        assert given_.as_dict() == DEFAULT.as_dict() | {name: value}


@pytest.mark.parametrize("name", NAMES)
def test_more_than_the_quota_is_refused_not_cut(name: str) -> None:
    asked = getattr(QUOTA, name) + 1
    with pytest.raises(LimitExceedsQuota, match=f"limits.{name} {asked} .at most") as refused:
        resolve_limits({name: asked}, DEFAULT, QUOTA)
    assert refused.value.errors == (
        {"field": f"limits.{name}", "asked": asked, "quota": asked - 1},
    )


def test_every_excess_is_named() -> None:
    with pytest.raises(LimitExceedsQuota) as refused:
        resolve_limits(dict.fromkeys(NAMES, 10**9), DEFAULT, QUOTA)
    assert [error["field"] for error in refused.value.errors] == [f"limits.{n}" for n in NAMES]


LIMITS = st.builds(Limits, **{name: st.integers(1, 10**6) for name in NAMES})


@given(default=LIMITS, quota=LIMITS)
def test_a_default_never_exceeds_the_quota(default: Limits, quota: Limits) -> None:
    settled: dict[str, Any] = resolve_limits({}, default, quota).as_dict()
    assert all(settled[name] <= getattr(quota, name) for name in NAMES)


def test_the_unit_is_the_last_word_of_each_name() -> None:
    assert NAMES == ["timeout_ms", "cpu_ms", "memory_mb", "max_output_kb", "max_artifacts"]
