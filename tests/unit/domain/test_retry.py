"""Retries: which failures ADE retries by itself, and after how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.outcome import Category, JobError, lease_lost_error, timed_out_error
from ade.domain.retry import BACKOFF_SECONDS_MAX, backoff_seconds, tries_again


@pytest.mark.parametrize("category", Category)
def test_only_internal_errors_are_tried_again(category: Category) -> None:
    assert tries_again(category, retries_left=1) == (category is Category.INTERNAL_ERROR)
    assert not tries_again(category, retries_left=0)


def test_the_wait_doubles_up_to_a_minute() -> None:
    assert [backoff_seconds(attempt) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


@given(st.integers(-5, 10**9))
def test_the_wait_is_bounded(attempt: int) -> None:
    assert 1 <= backoff_seconds(attempt) <= BACKOFF_SECONDS_MAX
    assert backoff_seconds(attempt) <= backoff_seconds(attempt + 1)


def test_the_errors_that_ade_makes_itself_fit_the_contract() -> None:
    assert lease_lost_error(3).as_dict() == {
        "category": "INTERNAL_ERROR",
        "code": "LEASE_LOST",
        "message": "The worker stopped answering during attempt 3, and no attempt is left.",
        "details": {"attempt": 3},
    }
    assert timed_out_error(1500).category is Category.RESOURCE_LIMIT
    assert timed_out_error(1500).code == "TIMED_OUT"
    assert "1.5 s" in timed_out_error(1500).message
    assert JobError(Category.VALIDATION_ERROR, "C", "m").as_dict()["details"] == {}
