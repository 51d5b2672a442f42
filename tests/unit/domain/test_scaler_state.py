"""What a scaler remembers, and when people are told that something is wrong."""

from dataclasses import replace

from ade.domain.scaler_state import DECISIONS_KEPT, ScalerState, trouble
from ade.domain.scaling import FailureMemory, ScaleDecision, ScaleRule, ScaleSignals

SECOND = 1_000_000
NOTHING = ScaleDecision(reason="Nothing waits.")


def test_a_state_is_read_as_it_was_written() -> None:
    state = ScalerState().failed(2, 9.5).away(3, "no answer")
    state = state.decided(ScaleSignals(waiting=4), 1, ScaleDecision(2, (), "Why."), 5)
    state = state.answered(ScaleRule(), "Slurm")
    assert ScalerState.from_json(state.as_json()) == state


def test_a_state_of_another_version_begins_anew() -> None:
    for text in (None, "", "{}", '{"unknown": 1}', '{"memory": 3}'):
        assert ScalerState.from_json(text) == ScalerState()


def test_of_decisions_that_change_nothing_only_the_last_is_kept() -> None:
    state = ScalerState()
    for at in range(30):
        decision = ScaleDecision(1, (), "Order.") if at % 10 == 0 else NOTHING
        state = state.decided(ScaleSignals(), 0, decision, at)
    assert [one.at_us for one in state.decisions] == [0, 10, 20, 29]
    for at in range(50):
        state = state.decided(ScaleSignals(), 0, ScaleDecision(1, (), "Order."), at)
    assert len(state.decisions) == DECISIONS_KEPT
    assert state.totals.ordered == 53


def test_being_away_counts_once_until_the_engine_answers() -> None:
    state = ScalerState().away(5, "a").away(9, "b")
    assert (state.away_since_us, state.away_reason, state.totals.times_away) == (5, "b", 1)
    assert state.answered(ScaleRule(), "").away(20, "c").totals.times_away == 2


def test_five_failures_in_a_row_are_trouble_and_four_are_not() -> None:
    state = ScalerState()
    for at in range(4):
        state = state.failed(3, at)
    assert trouble("a", state, 0, SECOND) is None
    assert "5 times in a row" in str(trouble("a", state.failed(1, 9), 0, SECOND))
    healed = replace(state.failed(1, 9), memory=FailureMemory())
    assert trouble("a", healed, 0, SECOND) is None
    assert healed.totals.failed == 13


def test_an_engine_that_does_not_answer_is_trouble() -> None:
    state = ScalerState().away(10 * SECOND, "squeue timed out")
    assert "does not answer for 5 s: squeue timed out" in str(trouble("a", state, 0, 15 * SECOND))


def test_a_scaler_that_died_is_trouble_and_one_that_was_stopped_is_not() -> None:
    assert trouble("a", ScalerState(), 0, 59 * SECOND) is None
    assert "no process decides since 2 min" in str(trouble("a", ScalerState(), 0, 120 * SECOND))
    assert trouble("a", ScalerState(), None, 120 * SECOND) is None
