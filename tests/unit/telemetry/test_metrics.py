"""What the metrics of scalers count, from totals that another process keeps."""

from ade.domain.scaler_state import ScalerState
from ade.domain.scaling import ScaleDecision, ScaleSignals
from ade.telemetry import metrics


def lines(name: str) -> dict[str, float]:
    """Read the metrics of one scaler."""
    text = metrics.exposition().decode()
    found = [line for line in text.splitlines() if f'scaler="{name}"' in line]
    pairs = [line.replace(f'scaler="{name}",', "").rpartition(" ") for line in found]
    return {key: float(value) for key, _, value in pairs if "_created" not in key}


def test_a_total_that_was_there_before_this_process_is_not_counted_again() -> None:
    order = ScaleDecision(3, (), "Order.")
    state = ScalerState().decided(ScaleSignals(waiting=7, starting_blocks=2), 0, order, 1)
    metrics.scalers({"m1": state})
    assert lines("m1")['ade_scaler_changes_total{what="ordered"}'] == 0
    metrics.scalers({"m1": state.decided(ScaleSignals(), 0, order, 2).failed(2, 3)})
    found = lines("m1")
    assert found['ade_scaler_changes_total{what="ordered"}'] == 3
    assert found['ade_scaler_changes_total{what="failed"}'] == 2
    assert found['ade_scaler_failures_in_a_row{scaler="m1"}'] == 1


def test_the_gauges_are_those_of_the_last_look() -> None:
    state = ScalerState().decided(ScaleSignals(7, starting_blocks=2), 0, ScaleDecision(), 1)
    metrics.scalers({"m2": state.away(5, "no answer")})
    found = lines("m2")
    assert found['ade_scaler_blocks{state="starting"}'] == 2
    assert found['ade_scaler_waiting_jobs{scaler="m2"}'] == 7
    assert found['ade_scaler_engine_away{scaler="m2"}'] == 1
    metrics.scalers({})
    assert not any("ade_scaler_blocks" in key for key in lines("m2"))
