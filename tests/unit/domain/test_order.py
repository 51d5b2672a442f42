"""The order of the queue, and how places are shared."""

from hypothesis import given
from hypothesis import strategies as st

from ade.domain.job import Priority
from ade.domain.order import rank, share_places
from ade.domain.units import MICROSECONDS

TIMES = st.integers(0, 2 * 10**15)
AGEING = st.floats(0, 10**6)


@given(TIMES, AGEING)
def test_a_higher_priority_goes_first(at_us: int, ageing_seconds: float) -> None:
    high, normal, low = (rank(priority, at_us, ageing_seconds) for priority in Priority)
    assert high <= normal <= low


@given(TIMES, TIMES, st.sampled_from(Priority), AGEING)
def test_within_a_priority_the_older_goes_first(
    one: int, other: int, priority: Priority, ageing_seconds: float
) -> None:
    ranks = rank(priority, one, ageing_seconds), rank(priority, other, ageing_seconds)
    assert (ranks[0] < ranks[1]) == (one < other)


@given(TIMES, st.integers(1, 10**6))
def test_one_step_of_priority_is_worth_the_ageing_span(at_us: int, ageing_seconds: int) -> None:
    low = rank(Priority.LOW, at_us, ageing_seconds)
    span = ageing_seconds * MICROSECONDS
    assert rank(Priority.NORMAL, at_us + span - 1, ageing_seconds) < low
    assert rank(Priority.NORMAL, at_us + span + 1, ageing_seconds) > low
    assert rank(Priority.HIGH, at_us + 2 * span + 1, ageing_seconds) > low


@given(st.lists(st.text(min_size=1), unique=True, max_size=20), st.integers(-3, 100))
def test_places_are_shared_fairly_and_in_order(workspaces: list[str], places: int) -> None:
    turns = share_places(workspaces, places)
    assert [workspace for workspace, _ in turns] == workspaces[: len(turns)]
    if workspaces and places > 0:
        assert sum(count for _, count in turns) == places
        counts = [count for _, count in turns]
        assert max(counts) - min(counts) <= 1
        assert len(turns) == min(len(workspaces), places)
    else:
        assert turns == []
