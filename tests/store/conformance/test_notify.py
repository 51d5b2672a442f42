"""Notifications: which topics a change notifies, and only after its commit."""

import pytest
from tests.store.acts import INTERNAL, Acts, failure, submission

from ade.domain.job import AGENT_POOL
from ade.kernel import Kernel
from ade.store.port import Transaction


class Published(list[str]):
    """Collect topics."""

    def take(self) -> set[str]:
        """Return what came since the last time."""
        found = set(self)
        self.clear()
        return found


@pytest.fixture
def published(acts: Acts, kernel: Kernel) -> Published:
    """Collect what is published."""
    heard = Published()
    kernel.store.on_commit = heard.extend
    return heard


def test_work_notifies_its_pool(acts: Acts, published: Published) -> None:
    acts.submit()
    assert published.take() == {"work:local"}
    acts.submit(pool=AGENT_POOL)
    assert published.take() == {"work:agent"}
    acts.submit(target_id="t")
    published.take()
    acts.submit(target_id="t")
    assert published.take() == set()


def test_each_change_of_a_job_is_notified(acts: Acts, published: Published) -> None:
    job = acts.submit(target_id="t")
    acts.submit(target_id="t")
    topic = job.id
    published.take()
    (claim,) = acts.claim()
    assert topic in published.take()
    acts.renew(claim)
    assert published.take() == set()
    acts.report(claim, "hello")
    assert published.take() == {topic}
    acts.pause(claim)
    assert published.take() == {topic, "stop:worker"}
    acts.release(claim)
    assert topic in published.take()
    acts.resume(claim)
    assert published.take() == {topic, "work:local"}
    (claim,) = acts.claim()
    published.take()
    acts.succeed(claim)
    assert published.take() == {topic, "work:local"}


def test_what_frees_a_lane_notifies_the_pool(acts: Acts, published: Published) -> None:
    claim = acts.start(target_id="t")
    acts.submit(target_id="t")
    published.take()
    acts.finish(claim, failure())
    assert published.take() == {claim.id}
    acts.clear(claim)
    assert published.take() == {claim.id, "work:local"}


def test_what_a_sweep_changes_is_notified(acts: Acts, published: Published) -> None:
    job = acts.submit(not_before=acts.clock.now_us() + 1_000_000)
    published.take()
    acts.wait(1)
    acts.kernel.now.expire()
    assert published.take() == {job.id, "work:local"}
    (claim,) = acts.claim()
    acts.finish(claim, INTERNAL)
    published.take()
    acts.wait(1)
    acts.kernel.now.expire()
    assert published.take() == {job.id, "work:local"}
    (claim,) = acts.claim()
    published.take()
    acts.lose(claim)
    assert published.take() == {job.id, "work:local"}


def test_a_rollback_notifies_no_one(acts: Acts, published: Published) -> None:
    def fail(tx: Transaction, items: list[None]) -> list[None]:
        acts.kernel.verbs.submit(tx, [submission()])
        tx.notify("never")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        acts.kernel.store.write(fail, [None])
    assert published.take() == set()
    assert acts.everything() == []


def test_notifications_follow_the_commit(acts: Acts, kernel: Kernel) -> None:
    """A waiter that is notified reads the database, and must find the change there."""
    seen: list[int] = []
    kernel.store.on_commit = lambda topics: seen.append(len(acts.everything()))
    acts.submit()
    acts.submit()
    assert seen == [1, 2]
