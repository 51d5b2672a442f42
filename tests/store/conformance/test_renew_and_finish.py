"""Renewing and finishing: only the holder of the fence may, and only once."""

import json

import pytest
from tests.store.acts import INTERNAL, Acts, failure, held, success

from ade.domain.errors import LeaseLost
from ade.domain.evaluation import Evaluation
from ade.domain.job import Status, StopRequest
from ade.domain.outcome import Category, JobError, Outcome
from ade.stages.finish import Finish, Finished
from ade.store.rows import Renewed

SECOND = 1_000_000


# --- renew


def test_a_renewal_moves_the_expiry(acts: Acts) -> None:
    claim = acts.start()
    acts.wait(10)
    assert acts.renew(claim) == [Renewed(claim.workspace_id, claim.id, 1, None)]
    assert acts.job(claim).lease_expires_at == acts.clock.now_us() + 15 * SECOND
    acts.wait(10)
    assert acts.kernel.now.expire().lost == 0


def test_all_leases_at_once(acts: Acts) -> None:
    for _ in range(3):
        acts.submit()
    one, two, three = acts.claim(3)
    acts.succeed(two)
    kept, lost, also_kept = acts.renew(one, two, three)
    assert (kept, also_kept) == (Renewed(*held(one), None), Renewed(*held(three), None))
    assert isinstance(lost, LeaseLost)


def test_a_renewal_carries_stop_requests(acts: Acts) -> None:
    claim = acts.start()
    acts.pause(claim)
    assert acts.renew(claim) == [Renewed(*held(claim), StopRequest.PAUSE)]
    acts.cancel(claim)
    assert acts.renew(claim) == [Renewed(*held(claim), StopRequest.CANCEL)]


def test_an_old_fence_renews_nothing(acts: Acts) -> None:
    first = acts.start()
    acts.lose(first)
    (second,) = acts.claim()
    until = acts.job(second).lease_expires_at
    acts.wait(1)
    assert isinstance(acts.renew(first)[0], LeaseLost)
    assert acts.job(second).lease_expires_at == until


def test_the_same_renewal_twice_in_one_batch(acts: Acts) -> None:
    claim = acts.start()
    assert acts.renew(claim, claim) == [Renewed(*held(claim), None)] * 2


# --- finish


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (success(answer=42), "succeeded"),
        (Outcome(Status.SUCCEEDED), "succeeded"),
        (failure(), "failed"),
        (failure(Category.VALIDATION_ERROR), "failed"),
        (failure(Category.RESOURCE_LIMIT), "failed"),
        (failure(Category.SANDBOX_VIOLATION), "failed"),
        (failure(Category.DEPENDENCY_ERROR), "failed"),
        (Outcome(Status.FAILED), "failed"),
        (Outcome(Status.TIMED_OUT), "timed_out"),
        (Outcome(Status.CANCELLED), "cancelled"),
        (Outcome(Status.PAUSED), "paused"),
    ],
)
def test_each_outcome(acts: Acts, outcome: Outcome, status: str) -> None:
    claim = acts.start()
    started_at = acts.clock.now_us()
    acts.wait(2)
    assert acts.finish(claim, outcome) == Finished(Status(status))
    job = acts.job(claim)
    assert job.status == status
    assert job.finished_at == (None if status == "paused" else acts.clock.now_us())
    assert (job.started_at, job.fence) == (started_at, 1)
    assert (job.lease_owner, job.lease_expires_at, job.stop_request) == (None, None, None)
    assert acts.result(claim) == outcome.result
    assert (job.error is None) == (outcome.error is None)
    assert acts.log(claim) == ["queued", "started", status]
    assert acts.last_event_data(claim)["attempt"] == 1
    assert acts.claim() == []


def test_what_an_attempt_used_is_kept(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(
        claim,
        Outcome(
            Status.SUCCEEDED, result={}, usage={"cpu_ms": 7}, isolation=("landlock", "seccomp")
        ),
    )
    job = acts.job(claim)
    assert json.loads(job.usage or "") == {"cpu_ms": 7}
    assert json.loads(job.isolation or "") == ["landlock", "seccomp"]
    assert acts.result(claim) == {}


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
def test_what_a_run_says_of_its_result_is_recorded_with_its_end(acts: Acts, status: Status) -> None:
    claim = acts.start()
    counts = {"tables": 1, "rows": 2}
    acts.finish(claim, Outcome(status, evaluation=Evaluation.PARTIAL, counts=counts))
    job = acts.job(claim)
    assert job.evaluation == "partial"
    assert json.loads(job.counts or "") == counts


def test_a_job_that_runs_again_has_no_evaluation_until_it_ends_again(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.finish(claim, Outcome(Status.FAILED, evaluation=Evaluation.UNUSABLE, counts={}))
    acts.resume(claim)
    job = acts.job(claim)
    assert (job.status, job.evaluation, job.counts) == ("queued", None, None)


def test_an_error_is_kept_whole_but_only_named_in_the_log(acts: Acts) -> None:
    claim = acts.start()
    error = JobError(Category.USER_CODE_ERROR, "PYTHON_EXCEPTION", "secret", {"line": 3})
    acts.finish(claim, Outcome(Status.FAILED, error=error))
    assert json.loads(acts.job(claim).error or "") == error.as_dict()
    assert acts.last_event_data(claim) == {
        "attempt": 1,
        "cause": "finished",
        "error": {"category": "USER_CODE_ERROR", "code": "PYTHON_EXCEPTION"},
    }


@pytest.mark.parametrize("status", [Status.QUEUED, Status.RUNNING, Status.PENDING])
def test_an_attempt_cannot_end_in_a_status_that_goes_on(acts: Acts, status: Status) -> None:
    claim = acts.start()
    with pytest.raises(ValueError, match=status.value):
        acts.finish(claim, Outcome(status))
    assert acts.status(claim) == "running"


def test_finishing_twice_raises_lease_lost(acts: Acts) -> None:
    claim = acts.start()
    acts.succeed(claim, first=True)
    with pytest.raises(LeaseLost, match="attempt 1 is over"):
        acts.succeed(claim, first=False)
    assert acts.result(claim) == {"first": True}
    assert acts.log(claim) == ["queued", "started", "succeeded"]


def test_finishing_twice_in_one_batch(acts: Acts) -> None:
    claim = acts.start()
    ends = [Finish(claim, success(n=n)) for n in range(3)]
    first, *rest = acts.kernel.now.many("finish", ends)
    assert first == Finished(Status.SUCCEEDED)
    assert all(isinstance(answer, LeaseLost) for answer in rest)
    assert acts.result(claim) == {"n": 0}


def test_an_old_fence_finishes_nothing(acts: Acts) -> None:
    first = acts.start()
    acts.lose(first)
    for outcome in (success(by=1), failure(), INTERNAL, Outcome(Status.PAUSED), None):
        with pytest.raises(LeaseLost):
            acts.finish(first, outcome)
    assert acts.status(first) == "queued"
    (second,) = acts.claim()
    for outcome in (success(by=1), failure(), INTERNAL, Outcome(Status.PAUSED), None):
        with pytest.raises(LeaseLost):
            acts.finish(first, outcome)
    acts.succeed(second, by=2)
    assert acts.result(first) == {"by": 2}
    with pytest.raises(LeaseLost):
        acts.finish(first, success(by=1))
    assert acts.result(first) == {"by": 2}


@pytest.mark.parametrize("stale_first", [True, False])
@pytest.mark.parametrize("stale", [failure(), INTERNAL, None])
def test_two_fences_of_one_job_in_one_batch(
    acts: Acts, stale: Outcome | None, stale_first: bool
) -> None:
    first = acts.start()
    acts.lose(first)
    (second,) = acts.claim()
    ends = [Finish(first, stale), Finish(second, success(by=2))]
    answers = list(acts.kernel.now.many("finish", ends if stale_first else ends[::-1]))
    lost, recorded = answers if stale_first else answers[::-1]
    assert isinstance(lost, LeaseLost)
    assert recorded == Finished(Status.SUCCEEDED)
    assert acts.status(second) == "succeeded"
    assert acts.result(second) == {"by": 2}


def test_a_batch_of_many_ends(acts: Acts) -> None:
    for _ in range(20):
        acts.submit()
    claims = acts.claim(20)
    ends = [Finish(claim, success(n=n)) for n, claim in enumerate(claims)]
    assert acts.kernel.now.many("finish", ends) == [Finished(Status.SUCCEEDED)] * 20
    assert [acts.result(claim) for claim in claims] == [{"n": n} for n in range(20)]


# --- tried again


def test_an_internal_error_goes_back_after_a_while(acts: Acts) -> None:
    claim = acts.start()
    assert acts.finish(claim, INTERNAL) == Finished(Status.QUEUED)
    job = acts.job(claim)
    assert (job.status, job.eligible, job.retries_left) == ("queued", 0, 1)
    assert job.not_before == acts.clock.now_us() + 1 * SECOND
    assert (job.started_at, job.finished_at, job.lease_owner) == (None, None, None)
    assert acts.log(claim) == ["queued", "started", "retried"]
    assert acts.last_event_data(claim)["backoff_seconds"] == 1
    acts.kernel.now.expire()
    assert acts.claim() == []
    acts.wait(1)
    acts.kernel.now.expire()
    (again,) = acts.claim()
    assert (again.id, again.fence, again.retries_left) == (claim.id, 2, 1)
    acts.succeed(again)
    assert acts.log(claim)[3:] == ["queued", "started", "succeeded"]


def test_the_wait_doubles_until_no_attempt_is_left(acts: Acts) -> None:
    acts.submit(retries=3)
    waits = []
    for _ in range(3):
        (claim,) = acts.claim()
        acts.finish(claim, INTERNAL)
        waits.append(acts.last_event_data(claim)["backoff_seconds"])
        acts.wait(waits[-1])
        acts.kernel.now.expire()
    (last,) = acts.claim()
    assert waits == [1, 2, 4]
    assert acts.finish(last, INTERNAL) == Finished(Status.FAILED)
    assert json.loads(acts.job(last).error or "")["category"] == "INTERNAL_ERROR"


def test_a_job_to_be_tried_again_holds_its_lane(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.finish(claim, INTERNAL)
    assert acts.job(claim).holds_lane == 1
    assert acts.claim(9) == []
    acts.wait(1)
    acts.kernel.now.expire()
    (again,) = acts.claim(9)
    assert again.id == claim.id
    acts.succeed(again)
    assert [claim.id for claim in acts.claim(9)] == [behind.id]


def test_a_job_that_is_asked_to_stop_is_not_tried_again(acts: Acts) -> None:
    claim = acts.start()
    acts.cancel(claim)
    assert acts.finish(claim, INTERNAL) == Finished(Status.CANCELLED)


def test_a_success_gives_the_lane_on_and_a_failure_keeps_it(acts: Acts) -> None:
    first = acts.start(target_id="t")
    second = acts.submit(target_id="t")
    third = acts.submit(target_id="t")
    acts.succeed(first)
    assert acts.job(second).eligible == 1
    (claim,) = acts.claim()
    acts.finish(claim, failure())
    assert acts.job(second).holds_lane == 1
    assert acts.job(third).eligible == 0
    assert acts.claim() == []


@pytest.mark.parametrize("outcome", [Outcome(Status.TIMED_OUT), Outcome(Status.PAUSED)])
def test_other_ends_that_keep_the_lane(acts: Acts, outcome: Outcome) -> None:
    claim = acts.start(target_id="t")
    acts.submit(target_id="t")
    acts.finish(claim, outcome)
    assert acts.job(claim).holds_lane == 1
    assert acts.claim() == []


def test_a_cancelled_attempt_gives_the_lane_on(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.cancel(claim)
    acts.finish(claim, Outcome(Status.CANCELLED))
    assert [claim.id for claim in acts.claim()] == [behind.id]


# --- release


def test_a_released_job_waits_again_at_once_and_loses_no_retry(acts: Acts) -> None:
    claim = acts.start()
    younger = acts.submit()
    assert acts.release(claim) == Finished(Status.QUEUED)
    assert acts.log(claim) == ["queued", "started", "released"]
    job = acts.job(claim)
    assert (job.retries_left, job.started_at, job.eligible) == (2, None, 1)
    assert [again.id for again in acts.claim(2)] == [claim.id, younger.id]


def test_a_released_job_keeps_its_lane(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.submit(target_id="t")
    acts.release(claim)
    assert [again.id for again in acts.claim(9)] == [claim.id]


@pytest.mark.parametrize("pauses", [True, False])
def test_a_released_job_that_is_asked_to_stop_is_stopped(acts: Acts, pauses: bool) -> None:
    claim = acts.start()
    acts.pause(claim) if pauses else acts.cancel(claim)
    acts.release(claim)
    assert acts.status(claim) == ("paused" if pauses else "cancelled")


def test_ends_of_every_kind_in_one_batch(acts: Acts) -> None:
    for number in range(4):
        acts.submit(target_id=f"t{number}")
        acts.submit(target_id=f"t{number}")
    claims = acts.claim(9)
    outcomes = [success(), failure(), INTERNAL, None]
    ends = [Finish(claim, outcome) for claim, outcome in zip(claims, outcomes, strict=True)]
    answers = acts.kernel.now.many("finish", ends)
    assert [answer.status.value for answer in answers] == [
        "succeeded",
        "failed",
        "queued",
        "queued",
    ]
    assert len(acts.claim(9)) == 2  # behind the success, and the one that was handed back


def test_an_address_that_is_out_of_date_is_only_a_hint(acts: Acts) -> None:
    for _ in range(3):
        acts.submit()
    one, two, three = acts.claim(3)
    moved = [one._replace(address=two.address), three._replace(address=None)]
    recorded = acts.kernel.now.many("finish", [Finish(claim, success()) for claim in moved])
    assert recorded == [Finished(Status.SUCCEEDED)] * 2
    assert acts.job(two).status == Status.RUNNING


def test_a_result_that_only_python_can_spell(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, success(half="\ud800"))
    assert acts.result(claim) == {"half": "\ud800"}
