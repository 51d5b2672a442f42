"""Reading: lists, logs, counts, and why a job waits."""

from collections.abc import Callable, Mapping

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import Acts, failure, ref, submission

from ade.domain.evaluation import Evaluation
from ade.domain.job import AGENT_POOL, Priority, Status
from ade.domain.outcome import Outcome
from ade.store.port import Reading
from ade.store.rows import JobRef, Lane


def listed(
    acts: Acts,
    filters: Mapping[str, object] | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[str]:
    def look(reading: Reading) -> list[str]:
        return [job.id for job in reading.list_jobs(WORKSPACE, filters or {}, before, limit)]

    return acts.kernel.now.read(look)


def test_newest_first_page_by_page(acts: Acts) -> None:
    ids = [acts.submit().id for _ in range(5)][::-1]
    assert listed(acts) == ids
    assert listed(acts, limit=2) == ids[:2]
    assert listed(acts, before=ids[1], limit=2) == ids[2:4]
    assert listed(acts, before=ids[-1]) == []


def test_filters(acts: Acts) -> None:
    first = acts.submit(priority=Priority.LOW)
    between = acts.clock.now_us()
    claim = acts.start(kind="other", target_id="t", priority=Priority.HIGH, submitted_by="me")
    rerun = acts.submit(rerun_of=claim.id)
    for filters in (
        {"status": "running"},
        {"kind": "other"},
        {"target_id": "t"},
        {"priority": "high"},
        {"submitted_by": "me"},
        {"status": "running", "kind": "other", "priority": "high"},
    ):
        assert listed(acts, filters) == [claim.id]
    assert listed(acts, {"rerun_of": claim.id}) == [rerun.id]
    assert listed(acts, {"submitted_after": between}) == [rerun.id, claim.id]
    assert listed(acts, {"submitted_after": between, "status": "running"}) == [claim.id]
    assert listed(acts, {"submitted_before": between + 1}) == [first.id]
    assert listed(acts, {"status": ("running", "queued")}) == [rerun.id, claim.id, first.id]
    assert listed(acts, {"status": ("running", "failed"), "kind": ("other",)}) == [claim.id]
    assert listed(acts, {"rerun_of": (claim.id, first.id)}) == [rerun.id]
    assert listed(acts, {"status": "failed"}) == []
    assert listed(acts, {"priority": "high"}, before=claim.id) == []


def test_jobs_are_counted_by_status_with_the_same_filters(acts: Acts) -> None:
    acts.succeed(acts.start())
    acts.start(kind="other")
    acts.submit(kind="other")
    between = acts.clock.now_us()
    acts.submit()

    def counted(**filters: object) -> dict[str, int]:
        return acts.kernel.now.read(lambda reading: reading.count_jobs(WORKSPACE, filters))

    assert counted() == {"succeeded": 1, "running": 1, "queued": 2}
    assert counted(kind="other") == {"running": 1, "queued": 1}
    assert counted(status=("queued", "failed"), kind="other") == {"queued": 1}
    assert counted(submitted_after=between) in ({"queued": 1}, {"queued": 2})
    assert counted(kind="none") == {}


def test_runs_are_found_by_their_evaluation(acts: Acts) -> None:
    found = {}
    for evaluation in Evaluation:
        claim = acts.start()
        acts.finish(claim, Outcome(Status.SUCCEEDED, evaluation=evaluation, counts={}))
        found[evaluation] = claim.id
    acts.succeed(acts.start())
    assert listed(acts, {"evaluation": "partial"}) == [found[Evaluation.PARTIAL]]
    wanted = ("complete", "unusable")
    assert listed(acts, {"evaluation": wanted}) == [
        found[Evaluation.UNUSABLE],
        found[Evaluation.COMPLETE],
    ]


def test_a_workspace_sees_its_own(acts: Acts, workspaces: Callable[[int], list[str]]) -> None:
    (elsewhere,) = workspaces(1)
    job = acts.submit(workspace_id=elsewhere)
    assert listed(acts) == []
    found = acts.kernel.now.read(lambda reading: reading.read_job(JobRef(WORKSPACE, job.id)))
    assert found is None
    assert acts.kernel.now.read(lambda reading: reading.workspace_ids()) == [WORKSPACE, elsewhere]


def test_a_log_is_read_from_a_place_on(acts: Acts) -> None:
    claim = acts.start()
    acts.report(claim, *[str(number) for number in range(6)])
    acts.succeed(claim)

    def places(after: int, limit: int) -> list[int]:
        def look(reading: Reading) -> list[int]:
            return [event.seq for event in reading.read_events(ref(claim), after, limit)]

        return acts.kernel.now.read(look)

    assert places(0, 100) == list(range(1, 10))
    for after in range(10):
        for limit in (1, 3, 100):
            assert places(after, limit) == list(range(1, 10))[after : after + limit]


def test_there_is_nothing_of_a_job_that_is_not_there(acts: Acts) -> None:
    unknown = JobRef(WORKSPACE, WORKSPACE)

    def look(reading: Reading) -> tuple[object, ...]:
        return (
            reading.read_job(unknown),
            reading.read_payload(unknown),
            reading.read_result(unknown),
            reading.read_events(unknown, 0, 9),
        )

    assert acts.kernel.now.read(look) == (None, None, None, [])


@pytest.mark.parametrize("together", [True, False])
def test_how_many_are_ahead(acts: Acts, together: bool) -> None:
    if together:
        outcomes = acts.kernel.now.many("submit", [submission() for _ in range(5)])
        jobs = [outcome.job for outcome in outcomes]
    else:
        jobs = [acts.submit() for _ in range(5)]
    acts.submit(pool=AGENT_POOL)
    acts.submit(priority=Priority.LOW)
    counts = acts.kernel.now.read(lambda reading: [reading.count_ahead(job, 3) for job in jobs])
    assert counts == [0, 1, 2, 3, 3]
    acts.claim(2)
    assert acts.kernel.now.read(lambda reading: reading.count_ahead(jobs[4], 100)) == 2


def test_who_holds_a_lane_and_how_many_wait(acts: Acts) -> None:
    lane = Lane(WORKSPACE, "t")
    assert acts.kernel.now.read(lambda reading: reading.lane_holders(lane)) == []
    head = acts.submit(target_id="t")
    for _ in range(4):
        acts.submit(target_id="t")
    (holder,) = acts.kernel.now.read(lambda reading: reading.lane_holders(lane))
    assert holder.id == head.id
    assert acts.kernel.now.read(lambda reading: reading.count_lane(lane, 100)) == 5
    assert acts.kernel.now.read(lambda reading: reading.count_lane(lane, 3)) == 3
    (claim,) = acts.claim(9)
    acts.finish(claim, failure())
    (holder,) = acts.kernel.now.read(lambda reading: reading.lane_holders(lane))
    assert (holder.id, holder.status) == (head.id, "failed")
    assert acts.kernel.now.read(lambda reading: reading.count_lane(lane, 100)) == 4


def test_counts_by_pool_and_status(acts: Acts) -> None:
    acts.submit()
    acts.submit()
    acts.submit(pool=AGENT_POOL)
    acts.pause(acts.submit())
    acts.succeed(acts.claim()[0])
    counts = acts.kernel.now.read(lambda reading: reading.count_by_status())
    assert counts == {("local", "queued"): 1, ("local", "paused"): 1, ("agent", "queued"): 1}


def test_leases_are_listed_by_their_holders(acts: Acts) -> None:
    acts.succeed(acts.start())
    jobs = [acts.submit() for _ in range(2)]
    held = [acts.claim(owner=owner)[0] for owner in ("w2", "w1")]
    assert [claim.id for claim in held] == [job.id for job in jobs]
    leases = acts.kernel.now.read(lambda reading: reading.list_leases(10))
    assert [(one.lease_owner, one.id, one.kind, one.fence) for one in leases] == [
        ("w1", held[1].id, "echo", 1),
        ("w2", held[0].id, "echo", 1),
    ]
    assert len(acts.kernel.now.read(lambda reading: reading.list_leases(1))) == 1


def test_the_workspace_of_a_job_is_found_by_its_id(
    acts: Acts, workspaces: Callable[[int], list[str]]
) -> None:
    (elsewhere,) = workspaces(1)
    job = acts.submit(workspace_id=elsewhere)
    find = acts.kernel.now.read
    assert find(lambda reading: reading.find_workspace_of_job(job.id)) == elsewhere
    assert find(lambda reading: reading.find_workspace_of_job(elsewhere)) is None
