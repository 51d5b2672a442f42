"""Opening jobs again: resume, resolve and clear."""

import json

import pytest
from tests.store.acts import INTERNAL, Acts, failure, success
from tests.store.conformance.test_stop import in_status

from ade.domain.errors import InvalidTransition, LeaseLost
from ade.domain.job import Status
from ade.domain.outcome import Outcome

STUCK = [failure(), Outcome(Status.TIMED_OUT), Outcome(Status.PAUSED)]
TIMED_OUT = Outcome(Status.TIMED_OUT)


@pytest.mark.parametrize("outcome", STUCK)
def test_a_job_of_a_target_is_resumed(acts: Acts, outcome: Outcome) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.finish(claim, outcome)
    resumed = acts.resume(claim)
    assert resumed == acts.job(claim)
    assert (resumed.status, resumed.finished_at, resumed.error) == ("queued", None, None)
    assert acts.log(claim)[-1] == "resumed"
    assert acts.last_event_data(claim)["by"] == "someone"
    (again,) = acts.claim(9)
    assert (again.id, again.fence) == (claim.id, 2)
    acts.succeed(again, at="last")
    assert acts.result(claim) == {"at": "last"}
    assert [claim.id for claim in acts.claim(9)] == [behind.id]


def test_a_paused_job_is_resumed_anywhere(acts: Acts) -> None:
    job = acts.submit()
    acts.pause(job)
    acts.resume(job)
    assert [claim.id for claim in acts.claim()] == [job.id]


@pytest.mark.parametrize("target_id", [None, "t"])
def test_a_job_that_was_paused_before_its_time_still_waits_for_it(
    acts: Acts, target_id: str | None
) -> None:
    job = acts.submit(not_before=acts.clock.now_us() + 10**9, target_id=target_id)
    acts.pause(job)
    acts.resume(job)
    acts.kernel.now.expire()
    assert acts.claim() == []
    acts.wait(1001)
    acts.kernel.now.expire()
    assert [claim.id for claim in acts.claim()] == [job.id]


def test_a_job_resumed_before_its_time_neither_holds_its_lane_nor_runs_beside_another(
    acts: Acts,
) -> None:
    running = acts.start(target_id="t")
    timed = acts.submit(target_id="t", not_before=acts.clock.now_us() + 5_000_000)
    behind = acts.submit(target_id="t")
    acts.pause(timed)
    acts.resume(timed)
    acts.wait(5)
    acts.kernel.now.expire()
    assert acts.claim(9) == []
    acts.succeed(running)
    (claim,) = acts.claim(9)
    assert claim.id == timed.id
    acts.succeed(claim)
    assert [claim.id for claim in acts.claim(9)] == [behind.id]


@pytest.mark.parametrize("outcome", [failure(), TIMED_OUT])
def test_a_failed_job_off_a_target_is_resumed_by_an_operator(acts: Acts, outcome: Outcome) -> None:
    claim = acts.start()
    acts.finish(claim, outcome)
    with pytest.raises(InvalidTransition, match="only on a target; run it again"):
        acts.resume(claim)
    acts.resume(claim, operator=True)
    assert [again.id for again in acts.claim()] == [claim.id]


@pytest.mark.parametrize("status", ["pending", "queued", "running", "succeeded", "cancelled"])
@pytest.mark.parametrize("verb", ["resume", "resolve"])
def test_what_cannot_be_opened_again(acts: Acts, status: str, verb: str) -> None:
    job = in_status(acts, status)
    with pytest.raises(InvalidTransition, match=status):
        getattr(acts, verb)(job)
    assert acts.job(job) == job


def test_a_resumed_job_has_no_result_until_it_has_one_again(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, Outcome(Status.FAILED, result={"partial": True}))
    assert acts.result(claim) == {"partial": True}
    acts.resume(claim, operator=True)
    assert acts.result(claim) is None
    (again,) = acts.claim()
    acts.succeed(again, answer=2)
    assert acts.result(claim) == {"answer": 2}


def test_an_attempt_from_before_a_resumption_is_refused(acts: Acts) -> None:
    first = acts.start()
    acts.finish(first, failure())
    acts.resume(first, operator=True)
    with pytest.raises(LeaseLost):
        acts.succeed(first)
    (second,) = acts.claim()
    with pytest.raises(LeaseLost):
        acts.succeed(first)
    acts.succeed(second)


def test_a_resumed_job_waits_for_its_lane(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.finish(claim, failure())
    acts.clear(claim)
    (running,) = acts.claim(9)
    assert running.id == behind.id
    assert acts.resume(claim).eligible == 0
    assert acts.claim(9) == []
    acts.succeed(running)
    assert [again.id for again in acts.claim(9)] == [claim.id]


def test_the_lane_stays_held_while_another_of_it_is_stuck(acts: Acts) -> None:
    first, second = (acts.submit(target_id="t") for _ in range(2))
    acts.pause(second)
    (claim,) = acts.claim()
    acts.finish(claim, failure())
    assert acts.resume(first).eligible == 0
    assert acts.claim() == []
    acts.resume(second)
    assert [claim.id for claim in acts.claim(9)] == [first.id]


# --- resolve


@pytest.mark.parametrize("outcome", STUCK)
def test_a_stuck_job_is_resolved_with_a_result(acts: Acts, outcome: Outcome) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.finish(claim, outcome)
    resolved = acts.resolve(claim, answer="found")
    assert resolved == acts.job(claim)
    assert (resolved.status, resolved.error, resolved.holds_lane) == ("succeeded", None, 0)
    assert resolved.finished_at == acts.clock.now_us()
    by_hand = {"by": "someone", "at_us": acts.clock.now_us(), "note": "by hand"}
    assert acts.result(claim) == {"answer": "found", "resolved": by_hand}
    assert acts.log(claim)[-1] == "resolved"
    assert acts.last_event_data(claim)["note"] == "by hand"
    assert [claim.id for claim in acts.claim(9)] == [behind.id]


def test_resolving_replaces_what_an_attempt_left(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, Outcome(Status.FAILED, result={"partial": True}))
    acts.resolve(claim, answer="found")
    result = acts.result(claim)
    assert (result["answer"], "partial" in result) == ("found", False)


def test_a_job_paused_before_it_started_is_resolved(acts: Acts) -> None:
    job = acts.submit()
    acts.pause(job)
    acts.resolve(job, answer=1)
    assert acts.status(job) == "succeeded"
    assert acts.claim() == []


# --- clear


@pytest.mark.parametrize("outcome", STUCK)
def test_a_cleared_job_stays_as_it_is_and_lets_the_lane_go_on(acts: Acts, outcome: Outcome) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.finish(claim, outcome)
    before = acts.job(claim)
    cleared = acts.clear(claim)
    assert cleared == before._replace(holds_lane=0, event_seq=before.event_seq + 1)
    assert acts.log(claim)[-1] == "cleared"
    assert acts.last_event_data(claim) == {"by": "someone", "note": "never mind"}
    assert [claim.id for claim in acts.claim(9)] == [behind.id]


@pytest.mark.parametrize("outcome", [success(), failure()])
def test_only_what_holds_a_lane_is_cleared(acts: Acts, outcome: Outcome) -> None:
    off_target = acts.start()
    acts.finish(off_target, outcome)
    with pytest.raises(InvalidTransition, match="nothing to clear"):
        acts.clear(off_target)


def test_what_runs_or_will_run_is_not_cleared(acts: Acts) -> None:
    head = acts.submit(target_id="t")
    with pytest.raises(InvalidTransition):
        acts.clear(head)
    (claim,) = acts.claim()
    with pytest.raises(InvalidTransition):
        acts.clear(claim)
    acts.finish(claim, INTERNAL)
    with pytest.raises(InvalidTransition):
        acts.clear(claim)
    assert json.loads(acts.job(claim).error or "{}")["category"] == "INTERNAL_ERROR"


def test_clearing_twice(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.finish(claim, failure())
    acts.clear(claim)
    with pytest.raises(InvalidTransition):
        acts.clear(claim)
