"""Admission: capacity is exact, and a refused job leaves no row."""

import threading

import pytest
from tests.store.acts import Acts, submission

from ade.clock import ManualClock
from ade.domain.errors import QueueFull
from ade.kernel import Kernel
from ade.stages.rules import AGENT, Rules
from ade.stages.submit import Accepted
from ade.store.store import Store


@pytest.fixture
def full(store: Store, clock: ManualClock, acts: Acts) -> Acts:
    """Act on a queue of three."""
    return Acts(Kernel(store, Rules(queue_size=3)), clock)


def test_the_queue_takes_its_size_and_no_more(full: Acts) -> None:
    for _ in range(3):
        full.submit()
    with pytest.raises(QueueFull, match="The queue is full: 3 jobs are waiting") as refused:
        full.submit()
    assert refused.value.retry_after_seconds >= 1
    assert len(full.everything()) == 3


def test_a_group_is_admitted_in_its_order(full: Acts) -> None:
    outcomes = full.kernel.now.many("submit", [submission() for _ in range(5)])
    assert [isinstance(outcome, Accepted) for outcome in outcomes] == [True] * 3 + [False] * 2
    assert len(full.everything()) == 3


def test_a_claimed_job_makes_room(full: Acts) -> None:
    for _ in range(3):
        full.submit()
    full.claim()
    full.submit()
    with pytest.raises(QueueFull):
        full.submit()


def test_all_who_wait_count(full: Acts) -> None:
    """Pending, queued behind a lane, and waiting to be tried again are all waiting."""
    full.submit(not_before=full.clock.now_us() + 10**9)
    full.submit(target_id="t")
    full.submit(target_id="t")
    with pytest.raises(QueueFull):
        full.submit()


def test_a_joined_job_needs_no_room(full: Acts) -> None:
    first = full.submit(execution_key="sha256:k")
    full.submit()
    full.submit()
    assert full.submit(execution_key="sha256:k").id == first.id


def test_jobs_for_agents_are_not_counted(full: Acts) -> None:
    for _ in range(5):
        full.submit(pool=AGENT)
    for _ in range(3):
        full.submit()
    with pytest.raises(QueueFull):
        full.submit()
    full.submit(pool=AGENT)


def test_paused_and_ended_jobs_are_not_counted(full: Acts) -> None:
    for _ in range(3):
        full.submit()
    paused, cancelled, _ = full.everything()
    full.pause(paused)
    full.cancel(cancelled)
    full.submit()
    full.submit()
    with pytest.raises(QueueFull):
        full.submit()


def test_a_queue_of_no_size_takes_all(acts: Acts) -> None:
    outcomes = acts.kernel.now.many("submit", [submission() for _ in range(200)])
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)


def test_many_threads_at_once_find_exactly_the_room(full: Acts) -> None:
    outcomes: list[bool] = []
    start = threading.Barrier(20)

    def submit() -> None:
        start.wait()
        (outcome,) = full.kernel.now.many("submit", [submission()])
        outcomes.append(isinstance(outcome, Accepted))

    threads = [threading.Thread(target=submit) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 17 + [True] * 3
    assert len(full.everything()) == 3


def test_who_is_refused_learns_how_fast_the_queue_drains(full: Acts) -> None:
    for _ in range(3):
        full.submit()
    for _ in range(3):
        full.claim()
        full.wait(10)
        full.submit()
    with pytest.raises(QueueFull, match="about 11 s") as refused:
        full.submit()
    assert refused.value.retry_after_seconds == 11  # three in a little more than 30 s
