"""Which agent gets which job, and what a poll in vain costs, on a clock that tests advance."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import submission
from tests.store.model.memory import MemoryStore

from ade.app.agent_hosts import AgentHosts
from ade.app.agent_work import ASKING_SECONDS, LOOK_SECONDS, OLD_SECONDS, AgentWork, AskingAgent
from ade.clock import ManualClock
from ade.domain.agent_pool import AgentPool
from ade.domain.errors import Unavailable
from ade.domain.job import AGENT_POOL
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.rows import Claim, JobRef, JobRow

WAIT = 3600.0


class CountingStore(MemoryStore):
    """Count the reads, and fail them on request."""

    reads = 0
    is_away = False

    async def aread(self, look: Callable[[Any], Any]) -> Any:
        self.reads += 1
        if self.is_away:
            raise Unavailable("The database does not answer.")
        return await super().aread(look)


class Scene:
    """Agents that ask, and jobs for them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = CountingStore(clock=self.clock)
        self.store.add_workspace(WORKSPACE)
        self.kernel = Kernel(self.store, KernelSettings(queue_size=0))
        self.hosts = AgentHosts(self.kernel)
        self.work = AgentWork(self.kernel, self.hosts)
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def submit(self, host: str | None = None, *labels: str, required: bool = False) -> JobRow:
        self.clock.advance(0.001)
        pool = AgentPool.of(host, labels, require_host=required)
        accepted = self.kernel.now.submit(
            submission(pool=AGENT_POOL, agent_pool=pool, retries=0, dedupe=False)
        )
        found: JobRow = accepted.job
        return found

    async def ask(
        self,
        name: str = "a",
        *labels: str,
        wait: float = 0,
        gone: "asyncio.Future[None] | None" = None,
    ) -> Claim | None:
        agent = AskingAgent(name, frozenset(labels))
        await asyncio.sleep(0)  # a notification comes as a callback of the loop
        return await self.work.next_job(agent, wait, gone or self.gone)

    def status(self, job: JobRow) -> str:
        ref = JobRef(job.workspace_id, job.id)
        found = self.kernel.now.read(lambda reading: reading.read_job(ref))
        return found.status if found is not None else "deleted"


@pytest.fixture
async def scene() -> Scene:
    return Scene()


async def settled() -> None:
    """Let everything run that can run now."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_idle_polls_read_nothing(scene: Scene) -> None:
    await scene.ask()
    reads = scene.store.reads
    for number in range(100):
        assert await scene.ask(f"a{number}") is None
    assert scene.store.reads == reads


async def test_what_is_old_is_read_once_for_all_and_no_poll_waits_for_it(scene: Scene) -> None:
    await scene.ask()
    reads = scene.store.reads
    scene.clock.advance(LOOK_SECONDS)
    assert await asyncio.gather(*(scene.ask(f"a{n}") for n in range(20))) == [None] * 20
    await settled()
    assert scene.store.reads == reads + 1


async def test_a_new_job_is_seen_by_the_next_poll(scene: Scene) -> None:
    assert await scene.ask() is None
    job = scene.submit()
    claim = await scene.ask()
    assert claim is not None
    assert claim.id == job.id


async def test_a_job_whose_notification_was_lost_is_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.ask()
    with monkeypatch.context() as patched:
        patched.setattr(scene.kernel.store, "on_commit", lambda topics: None)
        scene.submit()
    assert await scene.ask() is None
    scene.clock.advance(OLD_SECONDS)
    assert await scene.ask() is not None


async def test_a_preferred_host_goes_first_as_long_as_it_asks(scene: Scene) -> None:
    await scene.ask("near")
    scene.submit("near")
    assert await scene.ask("far") is None
    scene.clock.advance(ASKING_SECONDS)
    assert await scene.ask("far") is None
    scene.clock.advance(scene.kernel.settings.staleness.note_seconds + 1)
    assert await scene.ask("far") is not None


async def test_a_preferred_host_that_asks_another_server_goes_first(scene: Scene) -> None:
    elsewhere = AgentHosts(scene.kernel)
    elsewhere.asked("near")
    await elsewhere.write()
    scene.submit("near")
    assert await scene.ask("far") is None
    scene.clock.advance(ASKING_SECONDS + scene.kernel.settings.staleness.note_seconds + 1)
    assert await scene.ask("far") is not None


async def test_its_own_jobs_come_first(scene: Scene) -> None:
    scene.submit()
    own = scene.submit("a", required=True)
    claim = await scene.ask("a")
    assert claim is not None
    assert claim.id == own.id


async def test_a_long_poll_waits_for_a_job_that_it_may_take(scene: Scene) -> None:
    asking = asyncio.create_task(scene.ask("a", "gpu", wait=WAIT))
    await settled()
    scene.submit(None, "tpu")
    await settled()
    assert not asking.done()
    job = scene.submit(None, "gpu")
    async with asyncio.timeout(60):
        claim = await asking
    assert claim is not None
    assert claim.id == job.id


async def test_every_job_of_a_burst_reaches_a_long_poll(scene: Scene) -> None:
    asking = [asyncio.create_task(scene.ask(f"a{n}", wait=WAIT)) for n in range(40)]
    await settled()
    jobs = {scene.submit().id for _ in range(40)}
    async with asyncio.timeout(60):
        claims = await asyncio.gather(*asking)
    assert {claim.id for claim in claims if claim is not None} == jobs


async def test_a_long_poll_ends(scene: Scene) -> None:
    asking = asyncio.create_task(scene.ask(wait=0.05))
    await settled()
    scene.clock.advance(1)
    async with asyncio.timeout(60):
        assert await asking is None


async def test_a_client_that_has_left_takes_no_job(scene: Scene) -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asking = asyncio.create_task(scene.ask("a", wait=WAIT, gone=gone))
    await settled()
    gone.set_result(None)
    job = scene.submit()
    assert await asking is None
    assert scene.status(job) == "queued"
    claim = await scene.ask("b")
    assert claim is not None
    assert claim.fence == 1


async def test_a_client_that_leaves_during_the_claim_gives_the_job_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    job = scene.submit()
    dispatch = scene.kernel.dispatch

    async def leave(request: Any) -> Claim | None:
        claim = await dispatch(request)
        gone.set_result(None)
        return claim

    with monkeypatch.context() as patched:
        patched.setattr(scene.kernel, "dispatch", leave)
        assert await scene.ask("a", gone=gone) is None
    assert scene.status(job) == "queued"
    claim = await scene.ask("b")
    assert claim is not None
    assert claim.fence == 2


async def test_a_poll_that_is_cancelled_during_the_claim_gives_the_job_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = scene.submit()
    dispatch, claimed = scene.kernel.dispatch, asyncio.Event()

    async def slow(request: Any) -> Claim | None:
        claim = await dispatch(request)
        claimed.set()
        await settled()
        return claim

    monkeypatch.setattr(scene.kernel, "dispatch", slow)
    asking = asyncio.create_task(scene.ask())
    await claimed.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert scene.status(job) == "queued"


async def test_a_server_that_drains_hands_out_nothing(scene: Scene) -> None:
    asking = asyncio.create_task(scene.ask(wait=WAIT))
    await settled()
    scene.work.drain()
    async with asyncio.timeout(60):
        assert await asking is None
    scene.submit()
    assert await scene.ask() is None


async def test_a_database_that_comes_back_is_asked_again(scene: Scene) -> None:
    scene.store.is_away = True
    with pytest.raises(Unavailable):
        await scene.ask()
    assert await scene.ask() is None  # it is not asked by every poll
    scene.store.is_away = False
    scene.submit()
    assert await scene.ask() is not None


async def test_safe_mode_hands_out_nothing(scene: Scene) -> None:
    kernel = Kernel(scene.store, KernelSettings(safe_mode=True))
    work = AgentWork(kernel, AgentHosts(kernel))
    scene.submit()
    assert await work.next_job(AskingAgent("a"), 0, scene.gone) is None
