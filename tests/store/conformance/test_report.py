"""Reports: what the holder of a lease says is kept, in order, up to the log's limit."""

import json

import pytest
from tests.store.acts import Acts, held

from ade.clock import ManualClock
from ade.domain.errors import LeaseLost
from ade.domain.events import EventType
from ade.domain.job import AGENT_POOL
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.report import DATA_BYTES_MAX, AttemptReport
from ade.store.port import Store, Transaction
from ade.store.rows import Claim, NewEvent

LIMIT = 10


@pytest.fixture
def brief(store: Store, clock: ManualClock, acts: Acts) -> Acts:
    """Act on a kernel whose logs hold ten events; `acts` checks them afterwards."""
    return Acts(Kernel(store, KernelSettings(queue_size=0, events_per_job_max=LIMIT)), clock)


def lines(acts: Acts, claim: Claim) -> list[str]:
    return [json.loads(e.data)["line"] for e in acts.events(claim) if e.type == EventType.LOG]


def test_lines_are_kept_in_order(acts: Acts) -> None:
    claim = acts.start()
    assert acts.report(claim, "one", "two")
    assert acts.report(claim, "three")
    assert lines(acts, claim) == ["one", "two", "three"]
    assert acts.log(claim) == ["queued", "started"] + ["worker.log"] * 3


def test_progress_is_an_event_and_the_last_is_on_the_job(acts: Acts) -> None:
    claim = acts.start()
    acts.report(claim, progress={"done": 1})
    acts.report(claim, "a line")
    acts.report(claim, progress={"done": 2})
    assert json.loads(acts.job(claim).progress or "") == {"done": 2}
    assert acts.log(claim)[2:] == ["worker.progress", "worker.log", "worker.progress"]


def test_nothing_said_is_kept_as_nothing(acts: Acts) -> None:
    claim = acts.start()
    assert acts.report(claim)
    assert acts.log(claim) == ["queued", "started"]


def test_an_old_fence_says_nothing(acts: Acts) -> None:
    first = acts.start()
    acts.lose(first)
    with pytest.raises(LeaseLost):
        acts.report(first, "not mine")
    (second,) = acts.claim()
    with pytest.raises(LeaseLost):
        acts.report(first, "not mine")
    acts.succeed(second)
    with pytest.raises(LeaseLost):
        acts.report(second, "too late")
    assert lines(acts, first) == []


def test_reports_on_one_job_in_one_batch(acts: Acts) -> None:
    claim = acts.start()
    said = [
        AttemptReport(held(claim), ((EventType.LOG, {"line": line}),))
        for line in ("one", "two", "three")
    ]
    assert acts.kernel.now.many("report", said) == [True] * 3
    assert lines(acts, claim) == ["one", "two", "three"]


def test_the_log_ends_with_a_note(brief: Acts) -> None:
    claim = brief.start()
    for number in range(8):
        assert brief.report(claim, str(number))
    assert not brief.report(claim, "8")
    assert not brief.report(claim, "9")
    assert lines(brief, claim) == [str(n) for n in range(8)]
    assert brief.log(claim)[-1] == "events.truncated"
    assert brief.last_event_data(claim) == {"limit": LIMIT}
    assert len(brief.events(claim)) == LIMIT + 1


@pytest.mark.parametrize("size", [1, 3, 9, 30])
def test_what_still_fits_of_a_report_is_kept(brief: Acts, size: int) -> None:
    claim = brief.start()
    said = [str(number) for number in range(30)]
    for start in range(0, 30, size):
        brief.report(claim, *said[start : start + size])
    assert lines(brief, claim) == said[:8]
    assert brief.log(claim)[-1] == "events.truncated"
    assert [event.seq for event in brief.events(claim)] == list(range(1, LIMIT + 2))


def test_changes_of_status_are_written_beyond_the_limit(brief: Acts) -> None:
    claim = brief.start()
    brief.report(claim, *map(str, range(30)))
    brief.cancel(claim)
    brief.release(claim)
    assert brief.log(claim)[-3:] == ["events.truncated", "stop_requested", "cancelled"]


def test_progress_beyond_the_limit_is_dropped(brief: Acts) -> None:
    claim = brief.start()
    brief.report(claim, *map(str, range(30)))
    assert not brief.report(claim, progress={"done": 1})
    assert brief.job(claim).progress is None


def test_a_huge_event_is_cut(acts: Acts) -> None:
    claim = acts.start()
    acts.report(claim, "x" * DATA_BYTES_MAX)
    assert acts.last_event_data(claim) == {"truncated": True, "size_bytes": DATA_BYTES_MAX + 12}


def test_a_dispatched_attempt_reports_that_it_has_begun(store: Store, acts: Acts) -> None:
    acts.submit(pool=AGENT_POOL)
    (claim,) = acts.claim(pool=AGENT_POOL)
    acts.wait(5)
    now = acts.clock.now_us()

    def begin(tx: Transaction, items: list[None]) -> list[int]:
        moved = tx.report_started(held(claim), tx.now_us)
        tx.insert_events(
            [NewEvent(m.workspace_id, m.id, m.event_seq, now, "worker.note", "{}") for m in moved]
        )
        return [len(moved)]

    assert list(store.write(begin, [None])) == [1]
    assert acts.job(claim).started_at == now
    assert list(store.write(begin, [None])) == [0]
    acts.succeed(claim)
    assert acts.job(claim).started_at == now
