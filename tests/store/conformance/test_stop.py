"""Stopping: at once before a job starts, by request while it runs; no wish to cancel is lost."""

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import INTERNAL, Acts, failure, success

from ade.domain.errors import InvalidTransition, NotFound
from ade.domain.job import Status, StopRequest
from ade.domain.outcome import Outcome
from ade.stages.finish import Finished
from ade.stages.stop import Stop
from ade.store.rows import JobRef, JobRow

PAUSED, CANCELLED = Outcome(Status.PAUSED), Outcome(Status.CANCELLED)


def in_status(acts: Acts, status: str) -> JobRow:
    """Bring a job into a status by the shortest way."""
    if status == "pending":
        return acts.submit(not_before=acts.clock.now_us() + 10**9)
    job = acts.submit()
    if status in ("queued", "paused", "cancelled"):
        if status != "queued":
            acts.pause(job) if status == "paused" else acts.cancel(job)
        return acts.job(job)
    (claim,) = acts.claim()
    outcomes = {
        "succeeded": success(),
        "failed": failure(),
        "timed_out": Outcome(Status.TIMED_OUT),
    }
    if status in outcomes:
        acts.finish(claim, outcomes[status])
    assert acts.status(claim) == status
    return acts.job(claim)


@pytest.mark.parametrize(
    ("status", "cancelled", "paused"),
    [
        ("pending", "cancelled", "paused"),
        ("queued", "cancelled", "paused"),
        ("paused", "cancelled", "paused"),
        ("succeeded", None, None),
        ("failed", None, None),
        ("timed_out", None, None),
        ("cancelled", "cancelled", None),
    ],
)
@pytest.mark.parametrize("request_", [StopRequest.CANCEL, StopRequest.PAUSE])
def test_each_status(
    acts: Acts, status: str, cancelled: str | None, paused: str | None, request_: StopRequest
) -> None:
    job = in_status(acts, status)
    expected = cancelled if request_ is StopRequest.CANCEL else paused
    if expected is None:
        with pytest.raises(InvalidTransition, match=f"A job that is {status} cannot be"):
            acts.kernel.now.stop(Stop(JobRef(job.workspace_id, job.id), request_, "someone"))
        assert acts.job(job) == job
        return
    stopped = acts.kernel.now.stop(Stop(JobRef(job.workspace_id, job.id), request_, "someone"))
    assert stopped == acts.job(job)
    assert stopped.status == expected
    assert (stopped.finished_at is not None) == (expected == "cancelled")
    if expected != status:
        assert acts.last_event_data(job)["by"] == "someone"
    assert acts.claim() == []


def test_a_running_job_gets_a_stop_request(acts: Acts) -> None:
    claim = acts.start()
    asked = acts.cancel(claim)
    assert (asked.status, asked.stop_request) == ("running", "cancel")
    assert acts.log(claim) == ["queued", "started", "stop_requested"]
    assert acts.last_event_data(claim) == {"attempt": 1, "stop": "cancel", "by": "someone"}


@pytest.mark.parametrize("request_", [StopRequest.CANCEL, StopRequest.PAUSE])
def test_asking_twice_is_harmless(acts: Acts, request_: StopRequest) -> None:
    claim = acts.start()
    ask = Stop(JobRef(claim.workspace_id, claim.id), request_, "someone", "because")
    first, second = acts.kernel.now.many("stop", [ask, ask])
    assert first == second
    assert acts.log(claim) == ["queued", "started", "stop_requested"]
    assert acts.last_event_data(claim)["reason"] == "because"


def test_a_wish_to_cancel_outweighs_one_to_pause(acts: Acts) -> None:
    claim = acts.start()
    assert acts.pause(claim).stop_request == "pause"
    assert acts.cancel(claim).stop_request == "cancel"
    assert acts.pause(claim).stop_request == "cancel"


@pytest.mark.parametrize("outcome", [CANCELLED, PAUSED, INTERNAL, None])
def test_a_cancelled_attempt_ends_cancelled(acts: Acts, outcome: Outcome | None) -> None:
    """Also if the worker had heard only of an earlier wish to pause."""
    claim = acts.start()
    acts.pause(claim)
    acts.cancel(claim)
    assert acts.finish(claim, outcome) == Finished(Status.CANCELLED)
    assert acts.status(claim) == "cancelled"


def test_a_lost_worker_does_not_lose_the_wish(acts: Acts) -> None:
    claim = acts.start()
    acts.cancel(claim)
    acts.lose(claim)
    assert acts.status(claim) == "cancelled"


@pytest.mark.parametrize("outcome", [PAUSED, INTERNAL, None])
def test_a_paused_attempt_ends_paused(acts: Acts, outcome: Outcome | None) -> None:
    claim = acts.start()
    acts.pause(claim)
    assert acts.finish(claim, outcome) == Finished(Status.PAUSED)
    assert acts.job(claim).stop_request is None


@pytest.mark.parametrize("outcome", [success(answer=42), failure(), Outcome(Status.TIMED_OUT)])
def test_a_job_that_completes_all_the_same_has_completed(acts: Acts, outcome: Outcome) -> None:
    claim = acts.start()
    acts.cancel(claim)
    assert acts.finish(claim, outcome) == Finished(outcome.status)
    assert acts.result(claim) == outcome.result
    assert acts.job(claim).stop_request is None


def test_a_wish_is_about_one_attempt(acts: Acts) -> None:
    claim = acts.start()
    acts.pause(claim)
    acts.finish(claim, PAUSED)
    acts.resume(claim)
    (again,) = acts.claim()
    assert acts.renew(again)[0].stop_request is None  # type: ignore[union-attr]


def test_stopping_the_head_of_a_lane(acts: Acts) -> None:
    head, second, third = (acts.submit(target_id="t") for _ in range(3))
    acts.cancel(head)
    assert acts.job(second).eligible == 1
    acts.pause(second)
    assert acts.job(second).holds_lane == 1
    assert acts.claim() == []
    acts.cancel(second)
    assert [claim.id for claim in acts.claim()] == [third.id]


def test_cancelling_one_in_the_middle_of_a_lane(acts: Acts) -> None:
    head, middle, last = (acts.submit(target_id="t") for _ in range(3))
    acts.cancel(middle)
    (claim,) = acts.claim(9)
    assert claim.id == head.id
    acts.succeed(claim)
    assert [claim.id for claim in acts.claim(9)] == [last.id]


def test_pausing_one_in_the_middle_of_a_lane_holds_it_from_there(acts: Acts) -> None:
    head, middle, last = (acts.submit(target_id="t") for _ in range(3))
    acts.pause(middle)
    (claim,) = acts.claim(9)
    assert claim.id == head.id
    acts.succeed(claim)
    assert acts.claim(9) == []
    acts.resume(middle)
    (claim,) = acts.claim(9)
    assert claim.id == middle.id
    acts.succeed(claim)
    assert [claim.id for claim in acts.claim(9)] == [last.id]


def test_stopping_while_it_waits_to_be_tried_again(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.finish(claim, INTERNAL)
    acts.cancel(claim)
    assert acts.status(claim) == "cancelled"
    assert [claim.id for claim in acts.claim()] == [behind.id]


@pytest.mark.parametrize(
    "ref",
    [JobRef(WORKSPACE, WORKSPACE), JobRef("0198a000-0000-7000-8000-00000000ffff", WORKSPACE)],
)
def test_what_is_not_there_is_not_found(acts: Acts, ref: JobRef) -> None:
    acts.submit()
    with pytest.raises(NotFound):
        acts.kernel.now.stop(Stop(ref, StopRequest.CANCEL, "someone"))
