"""The news: who is told what, and only of what has been committed."""

import pytest
from tests.store.acts import INTERNAL, Acts, failure, submission

from ade.domain.job import AGENT_POOL
from ade.kernel import Kernel
from ade.store.port import Transaction


class News(list[str]):
    """Collect topics."""

    def take(self) -> set[str]:
        """Return what came since the last time."""
        found = set(self)
        self.clear()
        return found


@pytest.fixture
def news(acts: Acts, kernel: Kernel) -> News:
    """Hear what is published."""
    heard = News()
    kernel.store.on_commit = heard.extend
    return heard


def test_work_wakes_its_pool(acts: Acts, news: News) -> None:
    acts.submit()
    assert news.take() == {"work:local"}
    acts.submit(pool=AGENT_POOL)
    assert news.take() == {"work:agent"}
    acts.submit(target_id="t")
    news.take()
    acts.submit(target_id="t")
    assert news.take() == set()


def test_each_change_of_a_job_is_told(acts: Acts, news: News) -> None:
    job = acts.submit(target_id="t")
    acts.submit(target_id="t")
    topic = job.id
    news.take()
    (claim,) = acts.claim()
    assert topic in news.take()
    acts.renew(claim)
    assert news.take() == set()
    acts.report(claim, "hello")
    assert news.take() == {topic}
    acts.pause(claim)
    assert news.take() == {topic, "stop:worker"}
    acts.release(claim)
    assert topic in news.take()
    acts.resume(claim)
    assert news.take() == {topic, "work:local"}
    (claim,) = acts.claim()
    news.take()
    acts.succeed(claim)
    assert news.take() == {topic, "work:local"}


def test_what_frees_a_lane_wakes_the_pool(acts: Acts, news: News) -> None:
    claim = acts.start(target_id="t")
    acts.submit(target_id="t")
    news.take()
    acts.finish(claim, failure())
    assert news.take() == {claim.id}
    acts.clear(claim)
    assert news.take() == {claim.id, "work:local"}


def test_what_time_brings_is_told(acts: Acts, news: News) -> None:
    job = acts.submit(not_before=acts.clock.now_us() + 1_000_000)
    news.take()
    acts.wait(1)
    acts.kernel.now.expire()
    assert news.take() == {job.id, "work:local"}
    (claim,) = acts.claim()
    acts.finish(claim, INTERNAL)
    news.take()
    acts.wait(1)
    acts.kernel.now.expire()
    assert news.take() == {job.id, "work:local"}
    (claim,) = acts.claim()
    news.take()
    acts.lose(claim)
    assert news.take() == {job.id, "work:local"}


def test_nothing_is_told_of_what_was_rolled_back(acts: Acts, news: News) -> None:
    def fail(tx: Transaction, items: list[None]) -> list[None]:
        acts.kernel.verbs.submit(tx, [submission()])
        tx.notify("never")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        acts.kernel.store.write(fail, [None])
    assert news.take() == set()
    assert acts.everything() == []


def test_it_is_told_after_the_commit(acts: Acts, kernel: Kernel) -> None:
    """Whoever is woken looks at the database, and must find there what it was woken for."""
    seen: list[int] = []
    kernel.store.on_commit = lambda topics: seen.append(len(acts.everything()))
    acts.submit()
    acts.submit()
    assert seen == [1, 2]
