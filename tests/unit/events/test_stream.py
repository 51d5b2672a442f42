"""A log is followed to its end, from any place, also when news is lost."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.processes import aeventually
from tests.store.acts import Acts

from ade.clock import ManualClock
from ade.events import stream
from ade.events.stream import follow, wait_until_ended
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.rows import Claim, JobRef, JobRow, NewEvent
from ade.store.session import Session


@pytest.fixture
def acts(sqlite_url: str, clock: ManualClock) -> Iterator[Acts]:
    """Act on a kernel over a real store."""
    store = Session(sqlite_url, clock=clock)
    yield Acts(Kernel(store, KernelSettings(queue_size=0)), clock)
    store.close()


def _ref(job: JobRow | Claim) -> JobRef:
    return JobRef(job.workspace_id, job.id)


async def _all(acts: Acts, job: JobRow | Claim, after: int = 0) -> list[int]:
    """Follow to the end."""
    seen: list[NewEvent] = []
    async with asyncio.timeout(10):
        async for events in follow(acts.kernel, _ref(job), after):
            seen += events
    return [event.seq for event in seen]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 99])
async def test_a_finished_log_is_read_from_any_place(acts: Acts, after: int) -> None:
    claim = acts.start()
    acts.succeed(claim)
    assert await _all(acts, claim, after) == [seq for seq in (1, 2, 3) if seq > after]


async def test_a_job_that_does_not_exist_has_no_log(acts: Acts) -> None:
    job = acts.submit()
    missing = job._replace(id="0198a000-0000-7000-8000-00000000ffff")
    assert await _all(acts, missing) == []


async def test_the_log_is_followed_while_it_grows(acts: Acts) -> None:
    claim = acts.start()
    following = asyncio.create_task(_all(acts, claim))
    for turn in range(20):
        acts.report(claim, f"line {turn}")
        await asyncio.sleep(0)
    acts.succeed(claim)
    assert await following == list(range(1, 24))


async def test_a_log_longer_than_a_page_is_followed(
    acts: Acts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "EVENTS_PER_READ", 5)
    claim = acts.start()
    acts.report(claim, *[str(n) for n in range(30)])
    acts.succeed(claim)
    assert await _all(acts, claim) == list(range(1, 34))


async def test_a_stream_that_broke_is_resumed(acts: Acts) -> None:
    claim = acts.start()
    seen: list[int] = []
    async with asyncio.timeout(10):
        async for events in follow(acts.kernel, _ref(claim), 0):
            seen += [event.seq for event in events]
            break
    acts.report(claim, "meanwhile")
    acts.succeed(claim)
    assert seen + await _all(acts, claim, seen[-1]) == [1, 2, 3, 4]


async def test_a_lost_notification_costs_a_moment_and_no_event(
    acts: Acts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "READ_SECONDS_MAX", 0.05)
    claim = acts.start()
    acts.kernel.store.on_commit = lambda topics: None
    following = asyncio.create_task(_all(acts, claim))
    waiting = asyncio.create_task(wait_until_ended(acts.kernel, acts.job(claim), 10))
    acts.report(claim, "quietly")
    acts.succeed(claim)
    assert await following == [1, 2, 3, 4]
    assert (await waiting).status == "succeeded"


async def test_silence_is_broken_by_signs_of_life(acts: Acts) -> None:
    claim = acts.start()
    signs = 0
    async with asyncio.timeout(10):
        async for events in follow(acts.kernel, _ref(claim), 0, heartbeat_seconds=0.01):
            signs += not events
            if not events and signs == 3:
                acts.succeed(claim)
    assert signs >= 3


async def test_a_wait_for_the_end_ends_at_once(acts: Acts) -> None:
    claim = acts.start()
    waiting = asyncio.create_task(wait_until_ended(acts.kernel, acts.job(claim), 30))
    await aeventually(lambda: claim.id in acts.kernel.notifier._subscriptions)
    acts.succeed(claim)
    assert (await waiting).status == "succeeded"


async def test_a_wait_that_is_too_short_returns_the_job_as_it_is(acts: Acts) -> None:
    claim = acts.start()
    found = await wait_until_ended(acts.kernel, acts.job(claim), 0.01)
    assert found.status == "running"
    assert acts.kernel.notifier._subscriptions == {}
