"""Claims of kinds: a worker takes only what it can run, and the rest waits for one that can."""

import json

import pytest
from tests.store.acts import Acts, submission

from ade.domain.job import LOCAL_POOL
from ade.stages import claim as stage
from ade.stages.claim import ClaimRequest
from ade.stages.finish_and_claim import FinishAndClaim
from ade.stages.workers import SILENT_SECONDS, RunningWorker
from ade.store.rows import Claim, WorkerRow

OLD, NEW = frozenset({"echo"}), frozenset({"echo", "new"})


def old_worker(limit: int = 2) -> ClaimRequest:
    return ClaimRequest("old", limit, LOCAL_POOL, kinds=OLD)


def new_worker(limit: int = 2) -> ClaimRequest:
    return ClaimRequest("new", limit, LOCAL_POOL, kinds=NEW)


def ids(claims: list[Claim]) -> list[str]:
    return [claim.id for claim in claims]


def test_a_worker_takes_only_kinds_that_it_runs(acts: Acts) -> None:
    unknown = [acts.submit(kind="new") for _ in range(3)]
    known = acts.submit()
    assert ids(acts.kernel.now.claim(old_worker())) == [known.id]
    assert [acts.status(job) for job in unknown] == ["queued"] * 3
    assert ids(acts.kernel.now.claim(new_worker())) == [job.id for job in unknown[:2]]


def test_so_does_one_that_ends_jobs_at_the_same_time(acts: Acts) -> None:
    acts.submit(kind="new")
    known = acts.submit()
    answer = acts.kernel.now.finish_and_claim(FinishAndClaim([], old_worker()))
    assert ids(answer.claims) == [known.id]


def test_a_job_that_nobody_runs_waits_for_its_worker(acts: Acts) -> None:
    job = acts.submit(kind="new")
    for _ in range(3):
        acts.wait(1)
        assert acts.kernel.now.claim(old_worker()) == []
    assert acts.log(job) == ["queued"]
    assert ids(acts.kernel.now.claim(new_worker())) == [job.id]


def test_jobs_keep_their_order_when_they_are_recalled(acts: Acts) -> None:
    jobs = [acts.submit(kind="new") for _ in range(5)]
    assert acts.kernel.now.claim(old_worker()) == []
    asking, taken = new_worker(), list[str]()
    for _ in range(3):
        acts.wait(1)
        taken += ids(acts.kernel.now.claim(asking))
    assert taken == [job.id for job in jobs]


def test_a_job_that_is_set_aside_keeps_its_lane(acts: Acts) -> None:
    head, behind = (acts.submit(kind="new", target_id="t") for _ in range(2))
    assert acts.kernel.now.claim(old_worker()) == []
    acts.kernel.now.expire(True)
    (claim,) = acts.kernel.now.claim(new_worker())
    assert claim.id == head.id
    acts.succeed(claim)
    assert ids(acts.kernel.now.claim(new_worker())) == [behind.id]


def test_a_job_that_is_set_aside_can_be_paused_resumed_and_cancelled(acts: Acts) -> None:
    job = acts.submit(kind="new")
    assert acts.kernel.now.claim(old_worker()) == []
    acts.pause(job)
    assert acts.kernel.now.claim(new_worker()) == []
    acts.resume(job)
    assert acts.kernel.now.claim(old_worker()) == []
    acts.cancel(job)
    assert acts.kernel.now.claim(new_worker()) == []
    assert acts.status(job) == "cancelled"


def test_the_queue_counts_what_is_set_aside(acts: Acts) -> None:
    acts.submit(kind="new")
    acts.kernel.now.claim(old_worker())
    waiting = acts.kernel.store.write(lambda tx, _: [tx.count_waiting(LOCAL_POOL, 10)], [None])
    assert waiting == [1]


def test_one_claim_sets_a_bounded_number_aside(acts: Acts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "SET_ASIDE_JOBS_MAX", 2)
    acts.kernel.now.many("submit", [submission(kind="new") for _ in range(6)])
    known = acts.submit()
    asking = old_worker()
    assert acts.kernel.now.claim(asking) == []
    assert asking.rotation.has_more_to_set_aside
    assert ids(acts.kernel.now.claim(asking)) == [known.id]
    assert not asking.rotation.has_more_to_set_aside


def test_others_are_notified_of_what_is_set_aside(acts: Acts) -> None:
    acts.submit(kind="new")
    published: list[str] = []
    acts.kernel.store.on_commit = published.extend
    acts.kernel.now.claim(old_worker())
    assert published == ["work:local"]


def test_a_worker_is_listed_until_it_stops_or_falls_silent(acts: Acts) -> None:
    def listed() -> list[WorkerRow]:
        return acts.kernel.now.read(lambda reading: reading.list_workers(9))

    one, two = RunningWorker("one", "here", OLD), RunningWorker("two", "there", NEW)
    began = acts.clock.now_us()
    acts.kernel.now.many("note_worker", [one, two])
    acts.wait(SILENT_SECONDS - 1)
    acts.kernel.now.note_worker(two)
    acts.kernel.now.expire()
    assert [row.name for row in listed()] == ["one", "two"]
    acts.wait(2)
    acts.kernel.now.expire()
    (row,) = listed()
    assert (row.name, row.host, json.loads(row.kinds)) == ("two", "there", ["echo", "new"])
    assert (row.started_at, row.last_seen_at) == (began, acts.clock.now_us() - 2_000_000)
    acts.kernel.now.forget_worker("two")
    assert listed() == []
