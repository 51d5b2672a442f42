"""The clocks: the system's, and one that tests advance."""

import math
import time
from dataclasses import dataclass
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.clock import STEP_US_MIN, FileClock, ManualClock, SystemClock, new_id, new_ids


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


SECOND = 1_000_000
DAY = 86_400 * SECOND


@dataclass
class Host:
    """Hold the clocks of a host and of a database; the true time is the boot clock's."""

    boot_us: int = 5_000 * SECOND
    wall_offset_us: int = DAY
    database_offset_us: int = 3 * DAY

    def clock(self) -> SystemClock:
        """Make the clock of a process on this host."""
        return SystemClock(lambda: self.boot_us + self.wall_offset_us, lambda: self.boot_us)

    @property
    def database_us(self) -> int:
        """Read the database's clock."""
        return self.boot_us + self.database_offset_us

    def sync(self, clock: SystemClock, to_us: int, from_us: int) -> int:
        """Ask the database for its time over a network that takes its time in each direction."""
        sent_us = self.boot_us
        self.boot_us += to_us
        told = self.database_us
        self.boot_us += from_us
        return clock.sync(told, sent_us, self.boot_us)


us = st.integers
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), us(0, 2 * DAY)),
        st.tuples(st.just("step"), us(-2 * DAY, 2 * DAY)),
        st.tuples(st.just("sync"), st.tuples(us(0, 20 * SECOND), us(0, 20 * SECOND))),
        st.tuples(st.just("look"), st.none()),
    ),
    max_size=30,
)


@given(happenings, st.tuples(us(0, 20 * SECOND), us(0, 20 * SECOND)))
def test_no_step_of_a_wall_clock_moves_the_time(
    happenings: list[tuple[str, Any]], first: tuple[int, int]
) -> None:
    host = Host()
    clock = host.clock()
    host.sync(clock, *first)
    error_us = sum(first) // 2 + 1
    last = 0
    for what, how in happenings:
        if what == "pass":
            host.boot_us += how
        elif what == "step":
            host.wall_offset_us += how
        elif what == "sync":
            assert host.sync(clock, *how) == 0
            error_us = min(error_us, sum(how) + 1)
        now = clock.now_us()
        assert now >= last
        # A time that was told while the error was larger is not taken back.
        assert abs(now - host.database_us) <= error_us or now == last
        last = now


@given(st.lists(st.tuples(us(0, DAY), us(-2 * DAY, 2 * DAY))))
def test_without_a_database_that_tells_the_time_the_wall_clock_is_read_once(
    happenings: list[tuple[int, int]],
) -> None:
    host = Host()
    clock = host.clock()
    clock.begin_after(0)
    for passed_us, step_us in happenings:
        host.boot_us += passed_us
        host.wall_offset_us += step_us
        assert clock.now_us() == host.boot_us + DAY


def test_the_time_begins_no_earlier_than_what_was_recorded() -> None:
    host = Host()
    clock = host.clock()
    recorded = clock.now_us() + 3600 * SECOND
    assert clock.begin_after(recorded) == 3600 * SECOND
    host.boot_us += 7
    assert clock.now_us() == recorded + 7
    assert clock.begin_after(recorded - DAY) == 0


@pytest.mark.parametrize("step_us", [-DAY, -20 * SECOND, 20 * SECOND, DAY])
def test_a_step_of_the_databases_clock_is_noticed_and_followed(step_us: int) -> None:
    host = Host()
    clock = host.clock()
    host.sync(clock, 500, 500)
    started = clock.steady_since
    assert started == clock.monotonic()
    clock.now_us()
    host.boot_us += 10 * SECOND
    assert host.sync(clock, 500, 500) == 0
    assert clock.steady_since == started
    host.database_offset_us += step_us
    assert abs(host.sync(clock, 500, 500) - step_us) <= 1000
    assert abs(clock.now_us() - host.database_us) <= 1000
    assert clock.steady_since == clock.monotonic()


def test_drift_is_followed_and_the_time_stands_still_instead_of_running_backwards() -> None:
    host = Host()
    clock = host.clock()
    host.sync(clock, 0, 0)
    before = clock.now_us()
    host.database_offset_us -= STEP_US_MIN // 2
    assert host.sync(clock, 0, 0) == 0
    assert clock.now_us() == before
    host.boot_us += SECOND
    assert clock.now_us() == host.database_us


def test_an_answer_that_took_long_makes_nothing_worse() -> None:
    host = Host()
    clock = host.clock()
    host.sync(clock, 100, 100)
    assert host.sync(clock, 0, 3600 * SECOND) == 0
    assert clock.now_us() == host.database_us


@pytest.mark.parametrize("step_us", [-3600 * SECOND, 3600 * SECOND])
def test_a_step_of_the_clock_that_dates_files_is_noticed(step_us: int) -> None:
    host = Host()
    clock = FileClock(lambda: host.boot_us + host.wall_offset_us, lambda: host.boot_us)
    host.boot_us += DAY
    host.wall_offset_us += 10 * SECOND  # slewed
    assert clock.steady_seconds() == math.inf
    host.wall_offset_us += step_us
    assert clock.steady_seconds() == 0
    host.boot_us += 60 * SECOND
    assert clock.steady_seconds() == 60
