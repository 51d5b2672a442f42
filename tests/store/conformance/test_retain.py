"""Retention: old finished jobs go with all that belongs to them, and nothing else does."""

from collections.abc import Callable

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import Acts, failure, ref

from ade.clock import ManualClock
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.retain import JOBS_PER_CALL_MAX, Retain
from ade.store.port import Store

HOUR = 3600
KEY = "sha256:k"


@pytest.fixture
def brief(store: Store, clock: ManualClock, acts: Acts) -> Acts:
    """Act on a kernel that keeps finished jobs for an hour."""
    return Acts(Kernel(store, KernelSettings(queue_size=0, retain_seconds=HOUR)), clock)


def test_a_finished_job_is_kept_for_its_time(brief: Acts) -> None:
    claim = brief.start(execution_key=KEY)
    brief.wait(1)
    brief.write(claim, "printed")
    brief.succeed(claim, answer=42)
    brief.wait(HOUR)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == []
    brief.wait(1)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == [ref(claim)]
    assert brief.everything() == []
    assert brief.events(claim) == []
    assert brief.output(claim) == []
    assert brief.result(claim) is None
    assert brief.kernel.now.read(lambda reading: reading.read_payload(ref(claim))) is None
    assert not brief.accept(execution_key=KEY).deduplicated


def test_what_has_not_finished_is_kept(brief: Acts) -> None:
    brief.start()
    brief.submit()
    brief.submit(not_before=brief.clock.now_us() + 10**12)
    brief.pause(brief.submit())
    brief.wait(100 * HOUR)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == []
    assert len(brief.everything()) == 4


def test_what_holds_its_lane_is_kept_until_someone_decides(brief: Acts) -> None:
    claim = brief.start(target_id="t")
    brief.finish(claim, failure())
    brief.wait(2 * HOUR)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == []
    brief.clear(claim)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == [ref(claim)]


def test_a_replaced_job_takes_only_itself_away(brief: Acts) -> None:
    old = brief.start(execution_key=KEY)
    brief.finish(old, failure())
    brief.wait(2 * HOUR)
    new = brief.submit(execution_key=KEY)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == [ref(old)]
    assert brief.submit(execution_key=KEY).id == new.id


def test_a_job_that_ran_for_long_counts_from_its_end(brief: Acts) -> None:
    claim = brief.start()
    for _ in range(6):
        brief.wait(10)
        brief.renew(claim)
    brief.succeed(claim)
    brief.wait(HOUR - 1)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == []


def test_workspaces_are_apart(brief: Acts, workspaces: Callable[[int], list[str]]) -> None:
    (elsewhere,) = workspaces(1)
    mine, other = brief.submit(), brief.submit(workspace_id=elsewhere)
    for claim in brief.claim(2):
        brief.succeed(claim)
    brief.wait(2 * HOUR)
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == [ref(mine)]
    assert [job.id for job in brief.everything()] == [other.id]


def test_it_deletes_the_oldest_a_bounded_number_at_a_time(brief: Acts) -> None:
    from tests.store.acts import submission

    count = JOBS_PER_CALL_MAX + 5
    brief.kernel.now.many("submit", [submission() for _ in range(count)])
    for claim in brief.claim(count):
        brief.succeed(claim)
    oldest = sorted(job.id for job in brief.everything())[:JOBS_PER_CALL_MAX]
    brief.wait(2 * HOUR)
    assert [gone.id for gone in brief.kernel.now.retain(Retain(WORKSPACE))] == oldest
    assert len(brief.kernel.now.retain(Retain(WORKSPACE))) == 5


def test_no_time_means_for_ever(store: Store, acts: Acts) -> None:
    acts.succeed(acts.start())
    acts.wait(10**7)
    forever = Kernel(store, KernelSettings(retain_seconds=0))
    assert forever.now.retain(Retain(WORKSPACE)) == []
