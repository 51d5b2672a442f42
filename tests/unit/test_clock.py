"""The clocks: the system's, and one that tests advance."""

import time
from uuid import RFC_4122, UUID

import pytest

from ade.clock import ManualClock, SystemClock, new_id, new_ids


def test_the_system_clock_tells_the_time_of_day() -> None:
    before = time.time()
    now_us = SystemClock().now_us()
    assert before * 1e6 - 1 <= now_us <= time.time() * 1e6 + 1


def test_the_monotonic_time_counts_suspended_time() -> None:
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert 0 <= SystemClock().monotonic() - since_boot < 10


def test_a_manual_clock_stands_still() -> None:
    clock = ManualClock(5_000_000)
    assert (clock.now_us(), clock.monotonic()) == (5_000_000, 5.0)
    assert (clock.now_us(), clock.monotonic()) == (5_000_000, 5.0)


def test_a_manual_clock_advances_only_when_told() -> None:
    clock = ManualClock(0)
    clock.advance(1.5)
    assert clock.now_us() == 1_500_000
    assert clock.monotonic() == pytest.approx(1.5)


def test_many_ids_of_one_moment_are_in_order_and_all_others() -> None:
    ids = new_ids(ManualClock(), 1000)
    assert ids == sorted(set(ids))
    assert len(ids) == 1000
    assert {UUID(one).version for one in ids} == {7}
    assert {UUID(one).variant for one in ids} == {RFC_4122}
    assert {one[:19] for one in ids} == {new_id(ManualClock())[:19]}


def test_ids_sort_by_the_clock() -> None:
    clock = ManualClock()
    ids = []
    for _ in range(50):
        ids.append(new_id(clock))
        clock.advance(0.001)
    assert ids == sorted(ids)
    assert len(set(ids)) == 50


def test_ids_of_one_moment_differ() -> None:
    clock = ManualClock()
    assert len({new_id(clock) for _ in range(1000)}) == 1000
