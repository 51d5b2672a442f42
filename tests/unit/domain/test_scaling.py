"""The policy of elastic scale: what it may never do, and what it does in each case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.scaling import (
    FailureMemory,
    ScaleRule,
    ScaleSignals,
    UntakenJobs,
    decide,
    drain_after_seconds,
    idle_exit_seconds,
)

COUNTS = st.integers(0, 300)
NAMES = st.integers(0, 12).map(lambda count: tuple(f"block-{n}" for n in range(count)))
SIGNALS = st.builds(
    ScaleSignals,
    waiting=COUNTS,
    oldest_seconds=st.floats(0, 1000),
    running=COUNTS,
    free_slots=COUNTS,
    queued_blocks=NAMES,
    starting_blocks=st.integers(0, 12),
    live_blocks=st.integers(0, 12),
)
RULES = st.builds(
    lambda slots, low, more: ScaleRule(slots, low, low + more),
    st.integers(1, 16),
    st.integers(0, 5),
    st.integers(0, 20),
)
MEMORIES = st.builds(FailureMemory, st.integers(0, 40), st.floats(0, 5000))
NOW = st.floats(0, 10_000)


@given(SIGNALS, RULES, MEMORIES, NOW)
def test_it_never_orders_beyond_the_maximum(
    signals: ScaleSignals, rule: ScaleRule, memory: FailureMemory, now: float
) -> None:
    launch = decide(signals, rule, memory, now).launch
    assert launch == 0 or signals.blocks + launch <= rule.max_blocks


@given(SIGNALS, RULES, MEMORIES, NOW)
def test_it_orders_no_more_than_the_backlog_or_the_minimum_needs(
    signals: ScaleSignals, rule: ScaleRule, memory: FailureMemory, now: float
) -> None:
    launch = decide(signals, rule, memory, now).launch
    short = max(signals.waiting - signals.free_slots, 0)
    slots_on_the_way = (signals.coming + launch - 1) * rule.slots_per_block
    assert launch == 0 or slots_on_the_way < short or signals.blocks + launch <= rule.min_blocks


@given(SIGNALS, RULES, MEMORIES, NOW)
def test_it_cancels_only_queued_blocks_and_only_when_nothing_waits(
    signals: ScaleSignals, rule: ScaleRule, memory: FailureMemory, now: float
) -> None:
    decision = decide(signals, rule, memory, now)
    assert set(decision.cancel) <= set(signals.queued_blocks)
    assert not (decision.cancel and signals.waiting)
    assert not (decision.cancel and decision.launch)
    if decision.cancel:
        assert signals.blocks - len(decision.cancel) >= rule.min_blocks


@given(SIGNALS, RULES, MEMORIES.filter(lambda memory: memory.failures > 0), NOW)
def test_after_failures_it_orders_one_block_at_a_time_and_not_before_the_back_off(
    signals: ScaleSignals, rule: ScaleRule, memory: FailureMemory, now: float
) -> None:
    launch = decide(signals, rule, memory, now).launch
    assert launch <= 1
    if launch:
        assert signals.coming == 0
        assert now >= memory.failed_at_seconds + rule.backoff(memory.failures)


@given(SIGNALS, RULES, MEMORIES, NOW)
def test_the_same_facts_give_the_same_decision_and_always_a_reason(
    signals: ScaleSignals, rule: ScaleRule, memory: FailureMemory, now: float
) -> None:
    decision = decide(signals, rule, memory, now)
    assert decision == decide(signals, rule, memory, now)
    assert decision.reason.endswith(".")


@given(st.lists(st.integers(0, 400), min_size=1, max_size=40), RULES)
def test_what_is_ordered_is_enough_and_then_nothing_more_is(
    backlog: list[int], rule: ScaleRule
) -> None:
    """Play the engine that never starts anything: the same backlog is ordered for once."""
    queued: tuple[str, ...] = ()
    for waiting in [*backlog, backlog[-1]]:
        signals = ScaleSignals(waiting=waiting, oldest_seconds=60, queued_blocks=queued)
        decision = decide(signals, rule, FailureMemory(), 0)
        kept = [name for name in queued if name not in decision.cancel]
        queued = (*(f"{len(queued)}-{n}" for n in range(decision.launch)), *kept)
        slots = len(queued) * rule.slots_per_block
        assert slots >= waiting or len(queued) == rule.max_blocks
    signals = ScaleSignals(waiting=backlog[-1], oldest_seconds=60, queued_blocks=queued)
    assert decide(signals, rule, FailureMemory(), 0).launch == 0


RULE = ScaleRule(slots_per_block=4)
FRESH = FailureMemory()


def test_a_first_burst_is_ordered_for_at_once() -> None:
    assert decide(ScaleSignals(waiting=9), RULE, FRESH, 0).launch == 3


def test_with_live_pilots_the_oldest_job_must_have_waited() -> None:
    young = ScaleSignals(waiting=9, oldest_seconds=9.9, live_blocks=1)
    old = ScaleSignals(waiting=9, oldest_seconds=10, live_blocks=1)
    assert decide(young, RULE, FRESH, 0).launch == 0
    assert decide(old, RULE, FRESH, 0).launch == 3


def test_the_minimum_does_not_wait_for_jobs() -> None:
    assert decide(ScaleSignals(live_blocks=1), ScaleRule(4, 3), FRESH, 0).launch == 2


def test_a_registration_ends_the_back_off() -> None:
    memory = FRESH.failed(100).failed(200)
    assert memory.came(199, has_lived=True) == memory
    came = memory.came(201, has_lived=False)
    assert decide(ScaleSignals(waiting=40), RULE, memory, 201).launch == 0
    assert decide(ScaleSignals(waiting=40), RULE, memory, 260).launch == 1
    assert decide(ScaleSignals(waiting=40), RULE, came, 201).launch == 10


def test_after_a_pilot_that_died_young_only_one_that_has_lived_ends_the_back_off() -> None:
    memory = FRESH.failed(100, pilots_died=True).failed(200)
    assert memory.came(201, has_lived=False) == memory
    assert memory.came(201, has_lived=True) == FRESH
    young = ScaleSignals(waiting=40, oldest_seconds=60, live_blocks=1, young_blocks=1)
    assert decide(young, RULE, memory, 260).launch == 0
    old = ScaleSignals(waiting=40, oldest_seconds=60, live_blocks=1)
    assert decide(old, RULE, memory, 260).launch == 1


def test_failures_are_forgotten_once_nothing_was_tried_for_as_long_again() -> None:
    memory = FRESH.failed(100).failed(200)  # 60 s
    assert memory.faded(319, RULE, tried=0) == memory
    assert memory.faded(320, RULE, tried=0) == FRESH
    assert memory.faded(9999, RULE, tried=1) == memory


def test_pilots_with_free_slots_beside_waiting_jobs_are_noted_once_and_tried_again_later() -> None:
    idle = ScaleSignals(waiting=40, oldest_seconds=60, free_slots=4, live_blocks=1, idle_slots=4)
    untaken = UntakenJobs().seen(idle, 100)
    assert untaken.seen(idle, 119).times == 0
    untaken = untaken.seen(idle, 120).seen(idle, 150)
    assert (untaken.times, untaken.noted_at_seconds) == (1, 120)
    assert "ordered in 30 s" in decide(idle, RULE, FRESH, 120, untaken).reason
    assert decide(idle, RULE, FRESH, 150, untaken).launch == 0
    gone = ScaleSignals(waiting=40, oldest_seconds=90)
    untaken = untaken.seen(gone, 155)
    assert decide(gone, RULE, FRESH, 155, untaken).launch == 1
    assert untaken.seen(idle, 160).seen(idle, 180).times == 2


@pytest.mark.parametrize(
    "signals",
    [ScaleSignals(live_blocks=1, idle_slots=4), ScaleSignals(waiting=9, live_blocks=1)],
)
def test_jobs_that_are_taken_or_gone_end_the_matter(signals: ScaleSignals) -> None:
    assert UntakenJobs(3, 100.0, 80.0, is_noted=True).seen(signals, 200) == UntakenJobs()


def test_jobs_that_are_not_taken_do_not_lower_the_minimum() -> None:
    rule = ScaleRule(slots_per_block=4, min_blocks=2)
    waiting = ScaleSignals(waiting=40, oldest_seconds=90)
    assert decide(waiting, rule, FRESH, 110, UntakenJobs(1, 100.0)).launch == 2


def test_the_back_off_doubles_up_to_ten_minutes() -> None:
    waits = [RULE.backoff(failures) for failures in range(8)]
    assert waits == [0, 30, 60, 120, 240, 480, 600, 600]


def test_an_idle_pilot_stays_as_long_as_a_new_one_takes_to_come() -> None:
    assert idle_exit_seconds(60, ()) == 60
    assert idle_exit_seconds(60, (10, 300, 400)) == 300
    assert idle_exit_seconds(60, (1, 2, 3)) == 60


def test_a_pilot_drains_before_its_wall_time_is_over() -> None:
    assert drain_after_seconds(3600, 20) == 3520
    assert drain_after_seconds(30, 20) == 0


@pytest.mark.parametrize("rule", [(0, 0, 1), (1, 3, 2), (1, -1, 2)])
def test_a_rule_that_contradicts_itself_is_refused(rule: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="min_blocks"):
        ScaleRule(*rule)
