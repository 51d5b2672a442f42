"""Admission: capacity is exact, and a refused job leaves no row."""

import threading
from collections.abc import Callable

import pytest
from tests.databases import WORKSPACE, Database
from tests.store.acts import Acts, submission
from tests.store.conformance.test_builds import Site, version

from ade.clock import ManualClock
from ade.domain.agent_pool import AgentPool
from ade.domain.errors import QueueFull
from ade.domain.job import AGENT_POOL
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Accepted
from ade.store.port import Store

Workspaces = Callable[[int], list[str]]


@pytest.fixture
def full(store: Store, clock: ManualClock, acts: Acts) -> Acts:
    """Act on a queue of three."""
    return Acts(Kernel(store, KernelSettings(queue_size=3)), clock)


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


def test_all_waiting_jobs_count(full: Acts) -> None:
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
        full.submit(pool=AGENT_POOL)
    for _ in range(3):
        full.submit()
    with pytest.raises(QueueFull):
        full.submit()
    full.submit(pool=AGENT_POOL)


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


def test_a_refusal_says_how_fast_the_queue_drains(full: Acts) -> None:
    for _ in range(3):
        full.submit()
    for _ in range(3):
        full.claim()
        full.wait(10)
        full.submit()
    with pytest.raises(QueueFull, match="about 11 s") as refused:
        full.submit()
    assert refused.value.retry_after_seconds == 11  # three in a little more than 30 s


# --- the quota of a workspace ---------------------------------------------------------------------


@pytest.fixture
def shared(store: Store, clock: ManualClock, acts: Acts) -> Acts:
    """Act on a queue of five, of which a workspace may have three."""
    return Acts(Kernel(store, KernelSettings(queue_size=5, workspace_queue_size=3)), clock)


@pytest.fixture
def quota(store: Store, clock: ManualClock, acts: Acts) -> Acts:
    """Act on a queue of any length, of which a workspace may have two."""
    return Acts(Kernel(store, KernelSettings(queue_size=0, workspace_queue_size=2)), clock)


def test_a_workspace_takes_its_quota_and_leaves_the_rest(
    shared: Acts, workspaces: Workspaces
) -> None:
    (other,) = workspaces(1)
    for _ in range(3):
        shared.submit()
    with pytest.raises(QueueFull, match=r"3 of its jobs are waiting.*QUEUE_SIZE") as refused:
        shared.submit()
    assert refused.value.retry_after_seconds >= 1
    shared.submit(workspace_id=other)
    shared.submit(workspace_id=other)
    with pytest.raises(QueueFull, match="The queue is full: 5 jobs are waiting"):
        shared.submit(workspace_id=other)
    assert len(shared.everything()) == 5


def test_a_group_of_several_workspaces_is_admitted_in_its_order(
    shared: Acts, workspaces: Workspaces
) -> None:
    """A job refused for its workspace takes no place from others."""
    (other,) = workspaces(1)
    shared.submit()
    owners = [WORKSPACE, WORKSPACE, WORKSPACE, other, WORKSPACE, other, other]
    asked = [submission(workspace_id=owner) for owner in owners]
    outcomes = shared.kernel.now.many("submit", asked)
    messages = [str(outcome) if isinstance(outcome, QueueFull) else "" for outcome in outcomes]
    assert [bool(text) for text in messages] == [False, False, True, False, True, False, True]
    assert ["quota" in text for text in messages if text] == [True, True, False]
    assert len(shared.everything()) == 5


def test_a_quota_alone_bounds_no_queue(quota: Acts, workspaces: Workspaces) -> None:
    others = workspaces(4)
    asked = [submission(workspace_id=other) for other in others for _ in range(3)]
    outcomes = quota.kernel.now.many("submit", asked)
    assert [isinstance(outcome, Accepted) for outcome in outcomes] == [True, True, False] * 4


def test_all_waiting_jobs_count_against_the_quota(quota: Acts) -> None:
    quota.submit(not_before=quota.clock.now_us() + 10**9)
    quota.submit(target_id="t")
    with pytest.raises(QueueFull, match="quota"):
        quota.submit(target_id="t")


def test_runs_that_wait_for_a_build_count_against_the_quota(
    quota: Acts, database: Database
) -> None:
    site = Site(quota, database)
    asked = [site.run_submission(version()) for _ in range(3)]
    outcomes = quota.kernel.now.many("submit", asked)
    assert [isinstance(outcome, Accepted) for outcome in outcomes] == [True, True, False]
    assert [job.kind for job in quota.everything() if job.eligible] == ["build"]


def test_a_claimed_job_makes_room_in_its_workspace(quota: Acts) -> None:
    quota.submit()
    quota.submit()
    quota.claim()
    quota.submit()
    with pytest.raises(QueueFull, match="quota"):
        quota.submit()


def test_a_job_that_is_joined_needs_no_quota(quota: Acts) -> None:
    first = quota.submit(execution_key="sha256:k")
    quota.submit()
    assert quota.submit(execution_key="sha256:k").id == first.id


def test_jobs_for_agents_are_not_counted_against_the_quota(quota: Acts) -> None:
    for _ in range(5):
        quota.submit(pool=AGENT_POOL)
    quota.submit()
    quota.submit()
    with pytest.raises(QueueFull, match="quota"):
        quota.submit()


def test_many_threads_at_once_find_exactly_the_quota(quota: Acts, workspaces: Workspaces) -> None:
    owners = [*workspaces(3), WORKSPACE]
    outcomes: list[tuple[str, bool]] = []
    start = threading.Barrier(24)

    def submit(owner: str) -> None:
        start.wait()
        (outcome,) = quota.kernel.now.many("submit", [submission(workspace_id=owner)])
        outcomes.append((owner, isinstance(outcome, Accepted)))

    threads = [threading.Thread(target=submit, args=(owner,)) for owner in owners * 6]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted = [owner for owner, was_accepted in outcomes if was_accepted]
    assert sorted(accepted) == sorted(owners * 2)
    assert len(quota.everything()) == 8


def test_a_refusal_over_the_quota_says_how_fast_its_own_jobs_leave(
    quota: Acts, workspaces: Workspaces
) -> None:
    (other,) = workspaces(1)
    quota.start()
    for _ in range(10):  # of another: they make no room in this one
        quota.start(workspace_id=other)
        quota.wait(1)
    quota.submit()
    quota.submit()
    with pytest.raises(QueueFull, match="quota") as refused:
        quota.submit()
    assert refused.value.retry_after_seconds == 11  # one in a little more than 10 s


def test_jobs_for_agents_are_counted_by_what_they_ask_for(store: Store, clock: ManualClock) -> None:
    acts = Acts(Kernel(store, KernelSettings(queue_size=1, agent_queue_size=2)), clock)
    required = AgentPool.of("gpu", require_host=True)
    for _ in range(2):
        acts.submit(pool=AGENT_POOL)
        acts.submit(pool=AGENT_POOL, agent_pool=required)
    for changes in ({}, {"agent_pool": required}):
        with pytest.raises(QueueFull, match="2 jobs wait for the same agents"):
            acts.submit(pool=AGENT_POOL, **changes)
    acts.submit()
    assert acts.dispatch("a") is not None
    acts.submit(pool=AGENT_POOL)
    assert len(acts.everything()) == 6


def test_jobs_for_agents_are_admitted_in_their_order(store: Store, clock: ManualClock) -> None:
    acts = Acts(Kernel(store, KernelSettings(agent_queue_size=2)), clock)
    wanted = [submission(pool=AGENT_POOL) for _ in range(4)]
    outcomes = acts.kernel.now.many("submit", wanted)
    assert [isinstance(outcome, Accepted) for outcome in outcomes] == [True, True, False, False]
