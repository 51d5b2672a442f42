"""A worker whose slots are all taken records the ends of attempts with its next claim."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.processes import aeventually
from tests.unit.worker.bench import SHORT_LEASE, Bench

from ade.clock import SystemClock
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.spec import RunSpec
from ade.stages.finish import Finish

DONE = Outcome(Status.SUCCEEDED, result={"outputs": {"result_json": "done"}})
AT_ONCE_SECONDS = 10.0


class Gate:
    """Be a runner whose jobs all end when the gate is opened."""

    isolation = ("nothing is run",)
    refusal: str | None = None

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.started: list[str] = []

    def start(self, spec: RunSpec, on_progress: OnProgress) -> "Gate":
        """Start nothing."""
        assert spec.folder is not None
        self.started.append(spec.folder.name)
        return self

    def when_started(self, call: Callable[[], None]) -> None:
        """Start at once."""
        call()

    async def outcome(self) -> Outcome:
        """Wait for the gate."""
        await self.is_open.wait()
        return DONE

    def stop(self) -> None:
        """Have nothing to stop."""

    kill = time_out = stop


def ends_of(bench: Bench) -> list[int]:
    """Return how many ends each call recorded that also claimed."""
    return [len(one.finishes) for one in bench.store.items.get("finish_and_claim", [])]


async def test_every_end_goes_with_the_next_claim(bench: Bench) -> None:
    jobs = [await bench.submit(value=n) for n in range(5)]
    gate = Gate()
    gate.is_open.set()
    async with bench.working(gate, slots=1):
        for job in jobs:
            assert (await bench.ended(job)).status == "succeeded"
    assert ends_of(bench) == [1, 1, 1, 1, 1]
    assert "finish" not in bench.store.asked


async def test_ends_that_come_during_a_call_go_together_with_the_next(bench: Bench) -> None:
    jobs = [await bench.submit(value=n) for n in range(9)]
    gate = Gate()
    async with bench.working(gate, slots=4) as worker:
        await aeventually(lambda: len(gate.started) == 4)
        bench.store.trouble("hangs", "finish_and_claim")
        gate.is_open.set()
        await aeventually(lambda: sum(ends_of(bench)) + len(worker._ends) == 4)
        bench.store.recover()
        for job in jobs:
            assert (await bench.ended(job)).status == "succeeded"
    first, second, *_ = ends_of(bench)
    assert first == 4 or first + second >= 4


async def test_an_end_is_recorded_alone_where_nothing_waits_to_be_claimed(bench: Bench) -> None:
    job = await bench.submit(value=1)
    gate = Gate()
    async with bench.working(gate, slots=2):
        await aeventually(lambda: gate.started == [job.id])
        await aeventually(lambda: bench.store.asked.count("claim") > 1)  # it looks every 0.05 s
        gate.is_open.set()
        await bench.ended(job)
    assert sum(ends_of(bench)) + bench.store.asked.count("finish") == 1


async def test_a_draining_worker_only_finishes(bench: Bench) -> None:
    running, waiting = [await bench.submit(value=n) for n in range(2)]
    gate = Gate()
    worker = bench.worker(gate, slots=1)
    task = asyncio.create_task(worker.run())
    await aeventually(lambda: gate.started == [running.id])
    worker.drain()
    gate.is_open.set()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    assert (await bench.job(running)).status == "succeeded"
    assert (await bench.job(waiting)).status == "queued"
    assert ends_of(bench) == []


async def test_an_end_that_waits_when_the_drain_begins_is_recorded(bench: Bench) -> None:
    """The drain comes between the end of the attempt and the claim that would take it along."""
    jobs = [await bench.submit(value=n) for n in range(3)]
    gate = Gate()
    worker = bench.worker(gate, slots=2)
    task = asyncio.create_task(worker.run())
    await aeventually(lambda: len(gate.started) == 2)
    bench.store.trouble("hangs", "finish_and_claim")
    gate.is_open.set()
    await aeventually(lambda: "finish_and_claim" in bench.store.asked)
    worker.drain()
    bench.store.recover()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    statuses = [(await bench.job(job)).status for job in jobs]
    assert statuses.count("succeeded") >= 2
    assert "running" not in statuses  # also what the last claim brought has ended


async def test_an_end_that_could_not_go_with_a_claim_is_tried_again(bench: Bench) -> None:
    jobs = [await bench.submit(value=n) for n in range(2)]
    bench.store.trouble("fails", "finish_and_claim")
    gate = Gate()
    gate.is_open.set()
    async with bench.working(gate, slots=1):
        for job in jobs:
            ended = await bench.ended(job)
            assert (ended.status, ended.fence) == ("succeeded", 1)
    assert bench.store.asked.count("finish") >= 2


async def test_a_lost_lease_costs_only_its_own_attempt(bench: Bench) -> None:
    jobs = [await bench.submit(value=n) for n in range(2)]
    gate = Gate()
    async with bench.working(gate, slots=2) as worker:
        await aeventually(lambda: len(gate.started) == 2)
        stolen = next(one for one in worker._attempts if one.claim.id == jobs[0].id)
        bench.store.write(bench.kernel.verbs.finish, [Finish(stolen.claim, None)])
        gate.is_open.set()
        ended: list[Any] = [await bench.ended(job) for job in jobs]
    assert [(one.status, one.fence) for one in ended] == [("succeeded", 2), ("succeeded", 1)]


async def test_a_claim_with_ends_that_answers_late_is_handed_back(bench: Bench) -> None:
    bench.rules(SHORT_LEASE)
    first, second = [await bench.submit(value=n) for n in range(2)]
    gate = Gate()
    async with bench.working(gate, slots=1):
        await aeventually(lambda: gate.started == [first.id])
        bench.store.trouble("hangs", "finish_and_claim")
        gate.is_open.set()
        await aeventually(lambda: "finish_and_claim" in bench.store.asked)
        requested_at = SystemClock().monotonic()
        await aeventually(
            lambda: SHORT_LEASE.trusted_until(requested_at) < SystemClock().monotonic()
        )
        bench.store.recover()
        ended = await bench.ended(second)
    assert (await bench.job(first)).status == "succeeded"
    assert (ended.status, ended.fence, ended.retries_left) == ("succeeded", 2, 2)
    assert "job.released" in await bench.log(second)
