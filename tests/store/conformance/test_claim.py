"""Claiming: which job goes first, how many, and that no workspace starves."""

from collections import Counter
from collections.abc import Callable

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import Acts, submission

from ade.domain.job import AGENT_POOL, Priority
from ade.stages.claim import BULK, ClaimRequest

Workspaces = Callable[[int], list[str]]


def test_a_claimed_job_is_leased(acts: Acts) -> None:
    job = acts.submit(payload='{"n": 1}')
    acts.wait(5)
    (claim,) = acts.claim(owner='w "1"')
    now = acts.clock.now_us()
    assert (claim.id, claim.kind, claim.payload) == (job.id, "echo", '{"n": 1}')
    assert (claim.fence, claim.started_at, claim.retries_left) == (1, now, 2)
    found = acts.job(job)
    assert (found.status, found.eligible, found.fence) == ("running", 0, 1)
    assert found.lease_owner == 'w "1"'
    assert found.lease_expires_at == now + 15_000_000
    assert found.started_at == now
    assert acts.log(job) == ["queued", "started"]
    assert acts.last_event_data(job) == {"attempt": 1, "cause": "claimed", "worker": 'w "1"'}


def test_an_empty_queue_gives_nothing(acts: Acts) -> None:
    assert acts.claim(10) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_claimer_without_room_gets_nothing(acts: Acts, limit: int) -> None:
    acts.submit()
    assert acts.claim(limit) == []


def test_older_first(acts: Acts) -> None:
    jobs = [acts.submit() for _ in range(5)]
    assert [acts.claim()[0].id for _ in jobs] == [job.id for job in jobs]
    assert acts.claim() == []


def test_higher_priority_first(acts: Acts) -> None:
    low = acts.submit(priority=Priority.LOW)
    normal = acts.submit()
    high = acts.submit(priority=Priority.HIGH)
    assert [claim.id for claim in acts.claim(3)] == [high.id, normal.id, low.id]


def test_a_low_priority_ages_up(acts: Acts) -> None:
    """It is overtaken by younger ones of the next priority for the ageing span, and no longer."""
    low = acts.submit(priority=Priority.LOW)
    acts.wait(299)
    overtakes = acts.submit()
    acts.wait(2)
    too_late = acts.submit()
    assert [claim.id for claim in acts.claim(3)] == [overtakes.id, low.id, too_late.id]


def test_a_batch_is_claimed_in_order(acts: Acts) -> None:
    jobs = [acts.submit() for _ in range(7)]
    assert [claim.id for claim in acts.claim(5)] == [job.id for job in jobs[:5]]
    assert [claim.id for claim in acts.claim(5)] == [job.id for job in jobs[5:]]


def test_a_bulk_claimer_goes_on_where_it_stopped(acts: Acts) -> None:
    """A job before that place is claimed within a second, or when nothing else is left."""
    many = acts.kernel.now.many("submit", [submission() for _ in range(3 * BULK)])
    waiting = [accepted.job.id for accepted in many]
    ask = ClaimRequest("bulk", BULK)

    def taken() -> list[str]:
        return [claim.id for claim in acts.kernel.now.claim(ask)]

    assert taken() == waiting[:BULK]
    urgent = acts.submit(priority=Priority.HIGH)
    assert taken() == waiting[BULK : 2 * BULK]
    acts.wait(1)
    assert taken() == [urgent.id, *waiting[2 * BULK : 3 * BULK - 1]]
    late = acts.submit(priority=Priority.HIGH)
    assert taken() == [waiting[-1], late.id]


def test_a_claimer_of_few_always_begins_at_the_front(acts: Acts) -> None:
    acts.kernel.now.many("submit", [submission() for _ in range(2 * BULK)])
    ask = ClaimRequest("few", BULK - 1)
    assert len(acts.kernel.now.claim(ask)) == BULK - 1
    urgent = acts.submit(priority=Priority.HIGH)
    assert acts.kernel.now.claim(ask)[0].id == urgent.id


def test_askers_in_one_group_get_different_jobs(acts: Acts) -> None:
    for _ in range(5):
        acts.submit()
    asks = [ClaimRequest("one", 2), ClaimRequest("two", 2), ClaimRequest("three", 2)]
    one, two, three = acts.kernel.now.many("claim", asks)
    assert [len(claims) for claims in (one, two, three)] == [2, 2, 1]
    assert len({claim.id for claims in (one, two, three) for claim in claims}) == 5


def test_a_pool_is_claimed_by_its_own(acts: Acts) -> None:
    local, agent = acts.submit(), acts.submit(pool=AGENT_POOL)
    assert [claim.id for claim in acts.claim(9)] == [local.id]
    assert [claim.id for claim in acts.claim(9, pool=AGENT_POOL)] == [agent.id]


def test_an_agents_claim_is_only_dispatched(acts: Acts) -> None:
    job = acts.submit(pool=AGENT_POOL)
    (claim,) = acts.claim(pool=AGENT_POOL)
    assert claim.started_at is None
    assert acts.job(job).started_at is None
    assert acts.log(job) == ["queued", "dispatched"]


# --- fairness


def test_a_backlog_of_one_does_not_hold_up_another(acts: Acts, workspaces: Workspaces) -> None:
    (small,) = workspaces(1)
    acts.kernel.now.many("submit", [submission() for _ in range(1000)])
    late = acts.submit(workspace_id=small)
    ask = ClaimRequest("worker", 1)
    first_two = [acts.kernel.now.claim(ask)[0] for _ in range(2)]
    assert late.id in [claim.id for claim in first_two]


def test_a_workspace_that_arrives_meanwhile_is_served_next(
    acts: Acts, workspaces: Workspaces
) -> None:
    first, second = sorted([WORKSPACE, *workspaces(1)])
    for busy, late in ((first, second), (second, first)):
        acts.kernel.now.many("submit", [submission(workspace_id=busy) for _ in range(4)])
        ask = ClaimRequest("worker", 2)
        assert [claim.workspace_id for claim in acts.kernel.now.claim(ask)] == [busy] * 2
        acts.submit(workspace_id=late)
        assert {claim.workspace_id for claim in acts.kernel.now.claim(ask)} == {busy, late}
        assert [claim.workspace_id for claim in acts.kernel.now.claim(ask)] == [busy]
        assert acts.kernel.now.claim(ask) == []


def test_a_bulk_claimer_sees_another_workspace_a_moment_later(
    acts: Acts, workspaces: Workspaces
) -> None:
    (late,) = workspaces(1)
    acts.kernel.now.many("submit", [submission() for _ in range(4 * BULK)])
    ask = ClaimRequest("bulk", BULK)

    def served() -> set[str]:
        return {claim.workspace_id for claim in acts.kernel.now.claim(ask)}

    assert served() == {WORKSPACE}
    assert served() == {WORKSPACE}
    acts.submit(workspace_id=late)
    assert served() == {WORKSPACE}
    acts.wait(0.01)
    assert served() == {WORKSPACE, late}


def test_a_batch_is_shared(acts: Acts, workspaces: Workspaces) -> None:
    two, three = workspaces(2)
    for workspace_id in (WORKSPACE, two):
        acts.kernel.now.many("submit", [submission(workspace_id=workspace_id) for _ in range(20)])
    acts.submit(workspace_id=three)
    shares = Counter(claim.workspace_id for claim in acts.claim(9))
    assert shares[three] == 1
    assert sorted([shares[WORKSPACE], shares[two]]) == [4, 4]


@pytest.mark.parametrize("limit", [1, 3, 16, 40])
@pytest.mark.parametrize("count", [2, 15, 16, 17, 40])
def test_every_workspace_is_served(
    acts: Acts, workspaces: Workspaces, limit: int, count: int
) -> None:
    """After n claims no workspace is more than a turn ahead of another, however many there are."""
    everyone = workspaces(count)
    acts.kernel.now.many(
        "submit", [submission(workspace_id=ws) for ws in everyone for _ in range(10)]
    )
    ask, served = ClaimRequest("worker", limit), Counter[str]()
    while sum(served.values()) + limit <= 3 * count:
        served.update(claim.workspace_id for claim in acts.kernel.now.claim(ask))
    turns = [served[workspace_id] for workspace_id in everyone]
    most_in_one_claim = -(-limit // min(count, 16))
    assert max(turns) - min(turns) <= most_in_one_claim, turns


def test_two_claimers_rotate_by_themselves(acts: Acts, workspaces: Workspaces) -> None:
    everyone = workspaces(20)
    acts.kernel.now.many(
        "submit", [submission(workspace_id=ws) for ws in everyone for _ in range(10)]
    )
    asks = [ClaimRequest("one", 1), ClaimRequest("two", 1)]
    served = Counter(
        claims[0].workspace_id for _ in range(20) for claims in acts.kernel.now.many("claim", asks)
    )
    assert [served[workspace_id] for workspace_id in everyone] == [2] * 20


# --- lanes


def test_one_job_of_a_lane_at_a_time_in_order(acts: Acts) -> None:
    jobs = [acts.submit(target_id="t") for _ in range(4)]
    other = acts.submit(target_id="u")
    assert [job.eligible for job in (*jobs, other)] == [1, 0, 0, 0, 1]
    running, beside = acts.claim(9)
    assert beside.id == other.id
    ran = [running.id]
    for _ in jobs[1:]:
        assert acts.claim(9) == []
        acts.succeed(running)
        (running,) = acts.claim(9)
        ran.append(running.id)
    assert ran == [job.id for job in jobs]


def test_a_group_of_one_lane_keeps_its_order(acts: Acts) -> None:
    asks = [submission(target_id="t") for _ in range(10)]
    jobs = [outcome.job for outcome in acts.kernel.now.many("submit", asks)]
    ran = []
    for _ in jobs:
        (claim,) = acts.claim(9)
        ran.append(claim.id)
        acts.succeed(claim)
    assert ran == [job.id for job in jobs]


def test_priority_counts_within_a_lane(acts: Acts) -> None:
    head = acts.submit(target_id="t")
    normal = acts.submit(target_id="t")
    high = acts.submit(target_id="t", priority=Priority.HIGH)
    ran = []
    for _ in range(3):
        (claim,) = acts.claim(9)
        ran.append(claim.id)
        acts.succeed(claim)
    assert ran == [head.id, high.id, normal.id]


def test_lanes_of_two_workspaces_are_two(acts: Acts, workspaces: Workspaces) -> None:
    (elsewhere,) = workspaces(1)
    acts.submit(target_id="t")
    acts.submit(target_id="t", workspace_id=elsewhere)
    assert len(acts.claim(9)) == 2


def test_a_job_with_a_time_does_not_hold_its_lane(acts: Acts) -> None:
    later = acts.submit(target_id="t", not_before=acts.clock.now_us() + 60_000_000)
    now = acts.submit(target_id="t")
    (claim,) = acts.claim(9)
    assert claim.id == now.id
    acts.wait(61)
    acts.renew(claim)
    acts.kernel.now.expire()
    assert acts.claim(9) == []
    acts.succeed(claim)
    assert [claim.id for claim in acts.claim(9)] == [later.id]


def test_many_behind_one_lane_cost_others_nothing(acts: Acts) -> None:
    acts.kernel.now.many("submit", [submission(target_id="t") for _ in range(300)])
    free = acts.submit()
    assert free.id in [claim.id for claim in acts.claim(9)]
