"""The policy over hours of made-up work: it follows the backlog, and neither storms nor sleeps."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.domain.scaling_simulation import TICK_SECONDS, Fate, Simulation

from ade.domain.scaling import ScaleRule

RULE = ScaleRule(slots_per_block=4)
HOUR = 3600
BURSTS = {0: (200, 60), 2400: (200, 60)}
STEADY = dict.fromkeys(range(0, 2 * HOUR, 10), (1, 60))  # six slots are busy
TRICKLE = dict.fromkeys(range(0, HOUR, 60), (1, 5))


def about(seconds: int, seed: int) -> list[int]:
    """Make up delays of an engine."""
    dice = random.Random(seed)
    return [dice.randint(seconds // 2, seconds * 3 // 2) for _ in range(10_000)]


@pytest.mark.parametrize("seed", range(5))
def test_a_burst_is_ordered_for_once_and_everything_leaves(seed: int) -> None:
    played = Simulation(RULE, BURSTS, delay=about(30, seed).__getitem__).run(3 * HOUR)
    assert played.unfinished == 0
    assert played.blocks == []
    assert played.peak == RULE.max_blocks
    assert played.ordered == 2 * RULE.max_blocks
    assert played.waited(0.5) < 170
    assert played.waited(0.95) < 300


def test_steady_work_keeps_its_pilots() -> None:
    played = Simulation(RULE, STEADY).run(2 * HOUR)
    assert played.waited(0.95) <= 60
    assert played.peak <= 4
    assert played.ordered <= 12  # of 720 jobs
    assert played.cancelled <= 2


def test_a_job_each_minute_does_not_order_a_block_each() -> None:
    played = Simulation(RULE, TRICKLE).run(HOUR)
    assert played.peak == 1
    assert played.ordered <= len(TRICKLE) / 2


def test_a_slow_engine_gets_each_order_once() -> None:
    played = Simulation(RULE, {0: (40, 600)}, delay=lambda order: 1800).run(2 * HOUR)
    assert played.orders == [(0, 10)]
    assert played.unfinished == 0


def test_nothing_is_ordered_while_the_engine_does_not_answer() -> None:
    played = Simulation(RULE, BURSTS, is_away=lambda second: 100 <= second < 3000).run(3 * HOUR)
    assert played.orders == [(0, 10), (3000, 10)]
    assert played.unfinished == 0
    assert played.blocks == []


def test_blocks_that_never_register_are_tried_ever_more_rarely() -> None:
    played = Simulation(RULE, BURSTS, fate=lambda order: Fate.NEVER_REGISTERS).run(6 * HOUR)
    first, *probes = played.orders
    assert first == (0, 10)
    assert {blocks for _, blocks in probes} == {1}
    gaps = [later - one for (one, _), (later, _) in pairwise(probes)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= RULE.backoff_seconds_max
    assert len(probes) <= 6 * HOUR / RULE.backoff_seconds_max + 5


def test_pilots_that_die_young_are_tried_ever_more_rarely() -> None:
    played = Simulation(RULE, BURSTS, fate=lambda order: Fate.DIES_YOUNG).run(6 * HOUR)
    first, *probes = played.orders
    assert first == (0, 10)
    assert {blocks for _, blocks in probes} == {1}
    assert len(probes) <= 6 * HOUR / RULE.backoff_seconds_max + 5


def test_an_engine_that_heals_is_used_in_full_again() -> None:
    played = Simulation(
        RULE, BURSTS, fate=lambda order: Fate.NEVER_REGISTERS if order < 14 else Fate.WORKS
    ).run(3 * HOUR)
    assert played.unfinished == 0
    assert played.peak == RULE.max_blocks


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fate", [Fate.NEVER_REGISTERS, Fate.DIES_YOUNG])
def test_a_third_of_the_blocks_that_fail_delays_a_burst_but_does_not_stop_it(
    seed: int, fate: Fate
) -> None:
    dice = random.Random(seed)
    fates = [fate if dice.random() < 0.3 else Fate.WORKS for _ in range(10_000)]
    played = Simulation(RULE, BURSTS, fate=fates.__getitem__).run(3 * HOUR)
    assert played.unfinished == 0
    assert played.waited(0.5) < 400
    assert played.ordered <= 4 * RULE.max_blocks


def test_blocks_that_are_not_needed_any_more_are_cancelled() -> None:
    slow_after_two = Simulation(
        RULE, {0: (40, 20)}, delay=lambda order: 10 if order <= 2 else 5000
    ).run(HOUR)
    assert slow_after_two.unfinished == 0
    assert slow_after_two.cancelled == 8
    assert slow_after_two.blocks == []


def test_jobs_that_no_pilot_takes_do_not_make_blocks_come_and_go() -> None:
    paused = Simulation(RULE, {0: (40, 60)}, is_paused=lambda second: second < 5 * HOUR)
    played = paused.run(6 * HOUR)
    first, *probes = [order for order in played.orders if order[0] < 5 * HOUR]
    assert first == (0, 10)
    assert {blocks for _, blocks in probes} == {1}
    assert len(probes) <= 5 * HOUR / RULE.backoff_seconds_max + 5
    assert played.unfinished == 0


def test_once_jobs_are_taken_again_there_are_blocks_for_all() -> None:
    paused = Simulation(RULE, {0: (400, 60)}, is_paused=lambda second: second < HOUR)
    played = paused.run(3 * HOUR)
    assert played.unfinished == 0
    assert [blocks for second, blocks in played.orders if second > HOUR][-1] >= 9


TRACES = st.dictionaries(
    st.integers(0, 1200), st.tuples(st.integers(1, 60), st.integers(1, 120)), max_size=6
)


@settings(max_examples=20)
@given(
    TRACES,
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(1, 8),
    st.lists(st.sampled_from(Fate), max_size=8),
    st.lists(st.integers(0, 1800), max_size=4),
    st.integers(0, 90),
)
def test_whatever_goes_wrong_the_bounds_hold_and_all_work_is_done_in_the_end(
    trace: dict[int, tuple[int, int]],
    slots: int,
    min_blocks: int,
    more: int,
    fates: list[Fate],
    outages: list[int],
    delay: int,
) -> None:
    rule = ScaleRule(slots, min_blocks, min_blocks + more)
    played = Simulation(
        rule,
        trace,
        delay=lambda order: delay,
        fate=lambda order: fates[order] if order < len(fates) else Fate.WORKS,
        is_away=lambda second: any(begin <= second < begin + 300 for begin in outages),
    ).run(3 * HOUR)
    assert played.peak <= rule.max_blocks
    assert played.unfinished == 0
    seconds = [second for second, _ in played.orders]
    assert all(second % TICK_SECONDS == 0 for second in seconds)
    failed = [order for order in range(1, played.ordered + 1) if order < len(fates)]
    jobs = sum(count for count, _ in trace.values())
    assert played.ordered - len(failed) <= jobs + 3 * HOUR / 60 * max(min_blocks, 1)
