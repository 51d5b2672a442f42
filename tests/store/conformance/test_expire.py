"""Expiry: what time has passed over is repaired, and nothing else is touched."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.databases import Database
from tests.store.acts import INTERNAL, Acts, submission, success

from ade.domain.errors import LeaseLost
from ade.domain.job import AGENT_POOL, Cause, Status
from ade.kernel import Kernel
from ade.stages import transitions
from ade.stages.expire import ROWS_PER_SWEEP_MAX, Swept
from ade.store.port import Transaction
from ade.worker.attempt import PREPARE_SECONDS_MAX
from ade.worker.runner import START_SECONDS_MAX

LEASE = 15


def test_nothing_to_do(acts: Acts) -> None:
    acts.start()
    acts.submit(target_id="t")
    acts.submit(not_before=acts.clock.now_us() + 10**9)
    assert acts.kernel.now.expire() == Swept()


def test_a_lease_is_good_until_its_last_moment(acts: Acts) -> None:
    claim = acts.start()
    acts.wait(LEASE)
    assert acts.kernel.now.expire().lost == 0
    acts.wait(0.000001)
    assert acts.kernel.now.expire() == Swept(lost=1)
    assert acts.kernel.now.expire() == Swept()
    assert acts.status(claim) == "queued"


def test_a_lost_attempt_is_followed_by_another(acts: Acts) -> None:
    claim = acts.start()
    acts.lose(claim)
    job = acts.job(claim)
    assert (job.status, job.eligible, job.retries_left, job.started_at) == ("queued", 1, 1, None)
    assert acts.log(claim) == ["queued", "started", "lost"]
    assert acts.last_event_data(claim) == {"attempt": 1, "cause": "lease_lost", "worker": "worker"}
    (again,) = acts.claim()
    assert (again.id, again.fence) == (claim.id, 2)


def test_the_last_lost_attempt_fails_the_job(acts: Acts) -> None:
    claim = acts.start(retries=0, target_id="t")
    acts.submit(target_id="t")
    acts.lose(claim)
    job = acts.job(claim)
    assert (job.status, job.holds_lane, job.finished_at) == ("failed", 1, acts.clock.now_us())
    error = json.loads(job.error or "")
    assert (error["category"], error["code"]) == ("INTERNAL_ERROR", "LEASE_LOST")
    assert acts.log(claim) == ["queued", "started", "failed"]
    assert acts.claim() == []


def test_an_attempt_that_never_began_costs_no_retry(acts: Acts) -> None:
    acts.submit(pool=AGENT_POOL, retries=0)
    (claim,) = acts.claim(pool=AGENT_POOL)
    acts.lose(claim)
    assert (acts.status(claim), acts.job(claim).retries_left) == ("queued", 0)
    (again,) = acts.claim(pool=AGENT_POOL)
    assert again.fence == 2


@pytest.mark.parametrize("pauses", [True, False])
def test_a_lost_attempt_that_was_asked_to_stop_is_stopped(acts: Acts, pauses: bool) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.pause(claim) if pauses else acts.cancel(claim)
    acts.lose(claim)
    assert acts.status(claim) == ("paused" if pauses else "cancelled")
    assert [c.id for c in acts.claim()] == ([] if pauses else [behind.id])


def test_a_lost_attempt_keeps_its_lane(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.submit(target_id="t")
    acts.lose(claim)
    assert acts.job(claim).holds_lane == 1
    assert [again.id for again in acts.claim(9)] == [claim.id]


def test_a_lost_worker_that_comes_back_is_too_late(acts: Acts) -> None:
    claim = acts.start()
    acts.lose(claim)
    for attempt in (
        lambda: acts.succeed(claim),
        lambda: acts.release(claim),
        lambda: acts.report(claim, "hello"),
    ):
        with pytest.raises(LeaseLost):
            attempt()
    assert isinstance(acts.renew(claim)[0], LeaseLost)
    assert acts.log(claim) == ["queued", "started", "lost"]


def test_a_renewal_before_the_sweep_saves_the_lease(acts: Acts) -> None:
    claim = acts.start()
    acts.wait(LEASE + 1)
    acts.renew(claim)
    assert acts.kernel.now.expire() == Swept()
    acts.succeed(claim)


def test_age_is_no_reason(acts: Acts) -> None:
    """A job may run for as long as it is renewed and its timeout allows."""
    claim = acts.start()
    for _ in range(8):
        acts.wait(LEASE - 1)
        if acts.clock.now_us() < (claim.started_at or 0) + 60_000_000:
            acts.renew(claim)
            assert acts.kernel.now.expire() == Swept()


def test_a_worker_that_forgets_the_timeout_is_overruled(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    behind = acts.submit(target_id="t")
    acts.wait(59 + acts.kernel.settings.overdue_grace_seconds)
    acts.renew(claim)
    assert acts.kernel.now.expire() == Swept()
    acts.wait(1)
    assert acts.kernel.now.expire() == Swept(timed_out=1)
    job = acts.job(claim)
    assert (job.status, job.holds_lane) == ("timed_out", 1)
    assert json.loads(job.error or "")["code"] == "TIMED_OUT"
    with pytest.raises(LeaseLost):
        acts.succeed(claim)
    assert acts.job(behind).eligible == 0


def test_slow_preparation_does_not_count_against_the_timeout(acts: Acts) -> None:
    """The lease begins before the inputs have arrived, and the code may then run for its time."""
    claim = acts.start()
    acts.wait(PREPARE_SECONDS_MAX + START_SECONDS_MAX + 60)
    acts.renew(claim)
    assert acts.kernel.now.expire() == Swept()
    acts.succeed(claim)


def test_no_lease_expires_until_the_clock_has_run_evenly_for_one_lease(acts: Acts) -> None:
    claim = acts.start()
    acts.wait(3600)  # the clock of the database was stepped
    acts.clock.steady_since = acts.clock.monotonic()
    assert acts.kernel.now.expire() == Swept()
    acts.wait(LEASE - 1)
    assert acts.kernel.now.expire() == Swept()
    acts.renew(claim)
    acts.wait(1)
    assert acts.kernel.now.expire() == Swept()
    acts.wait(LEASE)
    assert acts.kernel.now.expire() == Swept(lost=1)


@pytest.mark.parametrize("step_seconds", [-3600, 24 * 3600])
def test_a_step_of_the_databases_clock_times_no_job_out(acts: Acts, step_seconds: int) -> None:
    claim = acts.start()
    acts.wait(step_seconds)
    acts.clock.steady_since = acts.clock.monotonic()
    acts.renew(claim)
    assert acts.kernel.now.expire() == Swept()
    late = 60 + acts.kernel.settings.overdue_grace_seconds
    acts.wait(late - 1)
    acts.renew(claim)
    assert acts.kernel.now.expire() == Swept()
    acts.wait(max(-step_seconds, 0) + 1)
    acts.renew(claim)
    acts.wait(0.001)
    assert acts.kernel.now.expire() == Swept(timed_out=1)


def test_timers(acts: Acts) -> None:
    now = acts.clock.now_us()
    later, sooner = acts.submit(not_before=now + 2_000_000), acts.submit(not_before=now + 1_000_000)
    agents = acts.submit(pool=AGENT_POOL, not_before=now + 1_000_000)
    acts.wait(1)
    assert acts.kernel.now.expire() == Swept(due=2)
    assert [claim.id for claim in acts.claim(9)] == [sooner.id]
    assert [claim.id for claim in acts.claim(9, pool=AGENT_POOL)] == [agents.id]
    assert acts.status(later) == "pending"


def test_a_due_job_waits_for_its_lane(acts: Acts) -> None:
    running = acts.start(target_id="t")
    timed = acts.submit(target_id="t", not_before=acts.clock.now_us() + 1_000_000)
    acts.wait(1)
    acts.kernel.now.expire()
    assert (acts.status(timed), acts.job(timed).eligible) == ("queued", 0)
    acts.succeed(running)
    assert [claim.id for claim in acts.claim()] == [timed.id]


def test_the_first_due_of_a_free_lane_takes_it(acts: Acts) -> None:
    at = acts.clock.now_us() + 1_000_000
    first, second = (acts.submit(target_id="t", not_before=at) for _ in range(2))
    acts.wait(2)
    assert acts.kernel.now.expire().due == 2
    (claim,) = acts.claim(9)
    assert claim.id == first.id
    acts.succeed(claim)
    assert [claim.id for claim in acts.claim(9)] == [second.id]


def test_a_lane_that_was_not_promoted_is_found(acts: Acts, database: Database) -> None:
    """None is ever left so by a stage; the sweep repairs what a person did to the database."""
    head = acts.submit(target_id="t")
    behind = acts.submit(target_id="t")

    def forget(tx: Transaction, items: list[None]) -> list[None]:
        cause = Cause.STOPPED_BEFORE_START
        tx.move([transitions.move(head, Status.CANCELLED, cause, tx.now_us)])
        return items

    acts.kernel.store.write(forget, [None])
    assert acts.claim() == []
    assert acts.kernel.now.expire() == Swept()  # looked for now and then only
    assert acts.kernel.now.expire(True) == Swept(lanes=1)
    assert [claim.id for claim in acts.claim()] == [behind.id]


def test_a_sweep_is_bounded_and_says_so(acts: Acts) -> None:
    acts.kernel.now.many("submit", [submission() for _ in range(ROWS_PER_SWEEP_MAX + 1)])
    assert len(acts.claim(ROWS_PER_SWEEP_MAX + 1)) == ROWS_PER_SWEEP_MAX + 1
    acts.wait(LEASE + 1)
    swept = acts.kernel.now.expire()
    assert (swept.lost, swept.more) == (ROWS_PER_SWEEP_MAX, True)
    assert acts.kernel.now.expire() == Swept(lost=1)


def test_two_sweeps_in_one_group(acts: Acts) -> None:
    claim = acts.start()
    acts.wait(LEASE + 1)
    assert acts.kernel.now.many("expire", [None, None]) == [Swept(lost=1)] * 2
    assert acts.log(claim) == ["queued", "started", "lost"]


def test_two_sweeps_of_two_servers(acts: Acts, database: Database) -> None:
    for number in range(20):
        acts.submit(target_id=f"t{number % 5}")
    acts.claim(20)
    acts.wait(LEASE + 1)
    other = Kernel(database.open(acts.clock), acts.kernel.settings)
    swept = _at_once(acts.kernel.now.expire, other.now.expire)
    assert sum(one.lost for one in swept) == 5
    assert [job.retries_left for job in acts.everything() if job.fence] == [1] * 5


def _at_once(*verbs: Callable[[], Swept]) -> list[Swept]:
    with ThreadPoolExecutor(len(verbs)) as pool:
        return list(pool.map(lambda verb: verb(), verbs))


def test_a_job_that_is_retried_and_then_lost(acts: Acts) -> None:
    claim = acts.start(retries=2)
    acts.finish(claim, INTERNAL)
    acts.wait(1)
    acts.kernel.now.expire()
    (second,) = acts.claim()
    acts.lose(second)
    (third,) = acts.claim()
    assert (third.fence, third.retries_left) == (3, 0)
    acts.finish(third, success(at=3))
    assert acts.result(third) == {"at": 3}
