"""The times in a job's log never run backwards, whatever the clock does between its events."""

from collections.abc import Callable

import pytest
from tests.store.acts import INTERNAL, Acts, failure

from ade.domain.outcome import Category
from ade.store.rows import Claim

BACK_SECONDS = 3600
LEASE = 15


def in_order(acts: Acts, job: Claim, count: int) -> None:
    times = [event.at for event in acts.events(job)]
    assert len(times) == count
    assert times == sorted(times)
    row = acts.job(job)
    recorded = [row.submitted_at, row.started_at, row.finished_at]
    known = [at for at in recorded if at is not None]
    assert known == sorted(known)
    assert known[-1] <= times[-1]


def back(acts: Acts) -> None:
    acts.wait(-BACK_SECONDS)


def test_a_claim_is_no_earlier_than_its_submission(acts: Acts) -> None:
    jobs = [acts.submit() for _ in range(3)]
    back(acts)
    claims = acts.claim(3)
    assert [claim.id for claim in claims] == [job.id for job in jobs]
    for claim in claims:
        assert claim.started_at == acts.job(claim).started_at
        in_order(acts, claim, 2)
    # The lease is granted by the clock as it is now.
    assert acts.job(claims[0]).lease_expires_at == acts.clock.now_us() + LEASE * 1_000_000


def test_reports_a_stop_request_and_the_end_are_no_earlier_than_the_start(acts: Acts) -> None:
    claim = acts.start()
    back(acts)
    acts.report(claim, "one", "two")
    back(acts)
    acts.cancel(claim)
    back(acts)
    acts.succeed(claim)
    in_order(acts, claim, 6)


def test_an_end_is_no_earlier_than_the_last_report(acts: Acts) -> None:
    claim = acts.start()
    acts.wait(60)
    acts.report(claim, "one")
    acts.wait(-30)
    acts.succeed(claim)
    in_order(acts, claim, 4)


def test_ends_of_many_jobs_at_once(acts: Acts) -> None:
    claims = [acts.start() for _ in range(3)]
    acts.report(claims[1], "one")
    back(acts)
    for claim in claims:
        acts.finish(claim, failure(Category.USER_CODE_ERROR))
    for claim, count in zip(claims, (3, 4, 3), strict=True):
        in_order(acts, claim, count)


def retried(acts: Acts, claim: Claim) -> None:
    acts.finish(claim, INTERNAL)
    acts.wait(1)
    acts.kernel.now.expire()


@pytest.mark.parametrize(
    ("leave", "events"),
    [(Acts.release, 3), (Acts.lose, 3), (retried, 4)],
    ids=["released", "lost", "retried"],
)
def test_a_second_attempt_is_no_earlier_than_the_first(
    acts: Acts, leave: Callable[[Acts, Claim], object], events: int
) -> None:
    claim = acts.start(retries=2)
    leave(acts, claim)
    back(acts)
    (again,) = acts.claim()
    in_order(acts, claim, events + 1)
    back(acts)
    acts.finish(again, None)
    in_order(acts, claim, events + 2)


def test_what_people_decide_is_no_earlier_than_the_end(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.finish(claim, failure(Category.USER_CODE_ERROR))
    back(acts)
    acts.resume(claim, operator=True)
    back(acts)
    acts.pause(claim)
    back(acts)
    acts.resolve(claim, value=1)
    in_order(acts, claim, 6)


def test_a_lane_is_cleared_no_earlier_than_the_end(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.finish(claim, failure(Category.USER_CODE_ERROR))
    back(acts)
    acts.clear(claim)
    in_order(acts, claim, 4)
