"""Events of a run in a few words: which pass, how much, and nothing of the input."""

from ade_engine.record.run_events import EventName, Recorder, RunEvent, step_of


def test_a_step_names_the_pass_and_counts() -> None:
    heard: list[RunEvent] = []
    record = Recorder(timings=False, on_event=heard.append)
    record.emit(EventName.SHEET_READ, sheet="Salaries of Ann", rows="secret")
    record.emit(EventName.TABLE_WRITTEN, table=2, sheet="Salaries of Ann", rows=6)
    assert [step_of(event) for event in heard] == ["sheet.read", "table.written table 2 rows 6"]
