"""The sweeper repairs what time has passed over, and forgets what is old."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.databases import WORKSPACE
from tests.processes import aeventually
from tests.unit.worker.bench import LIMITS, TroubledStore

from ade.app.directory import Directory
from ade.clock import ManualClock
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.domain.session_rule import SessionRule
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Submission
from ade.store.rows import JobRef, JobRow
from ade.worker.sweeper import RETAIN_EVERY_SECONDS, Sweeper

DAY_SECONDS = 24 * 3600


@pytest.fixture
def kernel(sqlite_url: str, clock: ManualClock) -> Iterator[Kernel]:
    """Open a kernel whose time is held in the hand, and whose store can be troubled."""
    store = TroubledStore(sqlite_url)
    store.clock = clock
    yield Kernel(store, KernelSettings(queue_size=0))
    store.close()


@pytest.fixture
def sweeper(kernel: Kernel, tmp_path: Path) -> Sweeper:
    """Make a sweeper that looks often."""
    return Sweeper(kernel, tmp_path, every_seconds=0.001)


async def _submit(kernel: Kernel) -> JobRow:
    asked = Submission(WORKSPACE, "echo", "{}", LIMITS, "someone")
    return (await kernel.submit(asked)).job


async def _end(kernel: Kernel) -> None:
    (claim,) = await kernel.claim(ClaimRequest("worker", 1))
    await kernel.finish(Finish(claim, Outcome(Status.SUCCEEDED, {})))


async def _find(kernel: Kernel, job: JobRow) -> JobRow | None:
    return await kernel.read(lambda reading: reading.read_job(JobRef(WORKSPACE, job.id)))


async def test_a_lost_lease_is_found(kernel: Kernel, sweeper: Sweeper, clock: ManualClock) -> None:
    job = await _submit(kernel)
    await kernel.claim(ClaimRequest("worker", 1))
    await sweeper.sweep()
    found = await _find(kernel, job)
    assert found is not None
    assert found.status == "running"  # its lease is alive: it belongs to someone
    clock.advance(kernel.settings.lease.lease_seconds + 1)
    await sweeper.sweep()
    found = await _find(kernel, job)
    assert found is not None
    assert (found.status, found.retries_left) == ("queued", 1)


async def test_the_age_of_the_last_sweep_is_known(sweeper: Sweeper, clock: ManualClock) -> None:
    assert sweeper.age_seconds is None
    await sweeper.sweep()
    clock.advance(7)
    assert sweeper.age_seconds == pytest.approx(7)


async def test_old_jobs_go_with_their_folders(
    kernel: Kernel, sweeper: Sweeper, clock: ManualClock, tmp_path: Path
) -> None:
    old = await _submit(kernel)
    await _end(kernel)
    clock.advance(kernel.settings.retain_seconds - 60)
    young = await _submit(kernel)
    await _end(kernel)
    for job in (old, young):
        (tmp_path / job.id).mkdir()
        (tmp_path / job.id / "logs.txt").write_text("said")
    clock.advance(61)
    await sweeper.sweep()
    assert await _find(kernel, old) is None
    assert await _find(kernel, young) is not None
    assert os.listdir(tmp_path) == [young.id]


async def test_forgetting_is_rare(
    kernel: Kernel, sweeper: Sweeper, clock: ManualClock, tmp_path: Path
) -> None:
    job = await _submit(kernel)
    await _end(kernel)
    clock.advance(kernel.settings.retain_seconds - 1)
    await sweeper.sweep()
    clock.advance(2)
    await sweeper.sweep()
    assert await _find(kernel, job) is not None
    clock.advance(RETAIN_EVERY_SECONDS)
    await sweeper.sweep()
    assert await _find(kernel, job) is None


async def test_zero_days_keep_everything(
    sqlite_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    store = TroubledStore(sqlite_url)
    store.clock = clock
    kernel = Kernel(store, KernelSettings(queue_size=0, retain_seconds=0))
    job = await _submit(kernel)
    await _end(kernel)
    clock.advance(1000 * DAY_SECONDS)
    await Sweeper(kernel, tmp_path, 1).sweep()
    assert await _find(kernel, job) is not None
    store.close()


async def test_trouble_is_tried_again(kernel: Kernel, sweeper: Sweeper, clock: ManualClock) -> None:
    store = kernel.store
    assert isinstance(store, TroubledStore)
    store.trouble("fails")
    running = asyncio.create_task(sweeper.run())
    await aeventually(lambda: store.asked.count("expire") >= 3)
    assert sweeper.age_seconds is None
    store.recover()
    await aeventually(lambda: sweeper.age_seconds is not None)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_expired_sessions_are_deleted_with_what_is_old(
    kernel: Kernel, clock: ManualClock, tmp_path: Path
) -> None:
    directory = Directory(kernel.store)  # type: ignore[arg-type]
    key = directory.bootstrap()
    assert key is not None
    sessions = directory.user_sessions(SessionRule(idle_seconds=60, max_seconds=60))
    old = await sessions.begin(key, "")
    clock.advance(RETAIN_EVERY_SECONDS)
    new = await sessions.begin(key, "")
    await Sweeper(kernel, tmp_path, 1, sessions.delete_expired).sweep()
    assert await sessions.find_by_id(old.session.id) is None
    assert await sessions.find_by_id(new.session.id) == new.session
