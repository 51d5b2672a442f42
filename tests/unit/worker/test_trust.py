"""A worker that cannot be sure of its lease kills its child, says nothing, and goes on."""

import asyncio
from functools import partial
from typing import Literal

import pytest
from tests.processes import aeventually, is_alive
from tests.unit.worker.bench import SHORT_LEASE, SLOW_RENEWALS, Bench

from ade.clock import SystemClock
from ade.domain.events import EventType, stop_topic
from ade.stages.finish import Finish
from ade.telemetry import metrics

pytestmark = pytest.mark.slow

HOW = pytest.mark.parametrize("how", ["fails", "hangs"])
How = Literal["fails", "hangs"]


@pytest.fixture(autouse=True)
def short_lease(bench: Bench) -> None:
    """Let leases end soon."""
    bench.rules(SHORT_LEASE)


def rejected(where: str) -> float:
    """Count the results that were discarded at a place."""
    name, labels = "ade_fence_rejected_total", {"where": where}
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


@HOW
async def test_the_child_is_dead_before_the_lease_ends(bench: Bench, how: How) -> None:
    given_up = rejected("given_up")
    job = await bench.submit(do="ignore_sigterm")
    async with bench.working() as worker:
        (pid,) = await bench.pids(job)
        bench.store.trouble(how)
        await aeventually(lambda: not is_alive(pid))
        died_at = SystemClock().now_us()
        await aeventually(lambda: worker.running == 0)
        found = await bench.job(job)
        assert (found.status, found.fence) == ("running", 1)  # nothing was recorded
        assert found.lease_expires_at is not None
        assert died_at < found.lease_expires_at
        assert rejected("given_up") == given_up + 1


@HOW
async def test_the_job_runs_again_when_the_database_is_back(bench: Bench, how: How) -> None:
    job = await bench.submit(do="linger_once")
    async with bench.working() as worker:
        await bench.pids(job)
        bench.store.trouble(how)
        await aeventually(lambda: worker.running == 0)
        bench.store.recover()
        await aeventually(partial(_lost, bench))
        ended = await bench.ended(job)
    assert (ended.status, ended.fence, ended.retries_left) == ("succeeded", 2, 1)


async def _lost(bench: Bench) -> int:
    return (await bench.kernel.expire()).lost


async def test_an_end_is_recorded_when_the_database_is_back(bench: Bench) -> None:
    job = await bench.submit(value="done")
    bench.store.trouble("fails", "finish")
    async with bench.working():
        await aeventually(lambda: bench.store.asked.count("finish") >= 2)
        assert (await bench.job(job)).status == "running"
        bench.store.recover()
        ended = await bench.ended(job)
    assert (ended.status, ended.fence) == ("succeeded", 1)
    assert (await bench.log(job)).count("job.started") == 1


async def test_a_late_result_is_dropped(bench: Bench) -> None:
    over = rejected("trust_over")
    job = await bench.submit(value="done", steps=1, sleep_ms=200)
    async with bench.working() as worker:
        await bench.event(job, EventType.STARTED)
        bench.store.trouble("fails")
        await aeventually(lambda: "finish" in bench.store.asked)
        await aeventually(lambda: worker.running == 0)
        assert (await bench.job(job)).status == "running"
        assert await bench.result(job) is None
    assert rejected("trust_over") == over + 1


async def test_leases_are_kept_while_the_database_answers(bench: Bench) -> None:
    job = await bench.submit(value=1, steps=1, sleep_ms=2500)  # longer than a lease
    async with bench.working():
        ended = await bench.ended(job)
    assert (ended.status, ended.fence) == ("succeeded", 1)


async def test_a_lease_that_was_taken_is_given_up_at_the_next_renewal(bench: Bench) -> None:
    """The first attempt's child dies, and nothing of it is seen in the second one's record."""
    bench.rules(SLOW_RENEWALS)
    job = await bench.submit(do="linger_once")
    async with bench.working() as worker:
        (pid,) = await bench.pids(job)
        (attempt,) = worker._attempts
        # Else the step that it reported is refused, and the attempt is given up by that.
        await aeventually(lambda: attempt._output._buffer.is_empty)
        bench.store.write(bench.kernel.verbs.finish, [Finish(attempt.claim, None)])
        ended = await bench.ended(job)
        assert is_alive(pid)
        bench.kernel.notifier.publish([stop_topic(worker.name)])  # renews at once
        await aeventually(lambda: not is_alive(pid))
        await aeventually(lambda: worker.running == 0)
    assert (ended.status, ended.fence) == ("succeeded", 2)
    assert (await bench.result(job))["outputs"]["result_json"] == "the second time"
    assert (await bench.log(job))[-1] == "job.succeeded"
    logs = bench.jobs_dir / job.id / "logs.txt"
    assert await asyncio.to_thread(logs.read_text) == "again\n"


async def test_the_claim_goes_on_after_trouble(bench: Bench) -> None:
    bench.store.trouble("fails", "claim")
    async with bench.working():
        await aeventually(lambda: "claim" in bench.store.asked)
        bench.store.recover()
        job = await bench.submit(value=1)
        assert (await bench.ended(job)).status == "succeeded"


async def test_a_claim_that_answers_too_late_to_be_trusted_runs_nothing(bench: Bench) -> None:
    job = await bench.submit(do="linger_once")
    bench.store.trouble("hangs", "claim")
    worker = bench.worker()
    task = asyncio.create_task(worker.run())
    await aeventually(lambda: "claim" in bench.store.asked)
    worker.drain()
    ended, _ = await asyncio.wait([task], timeout=3 * SHORT_LEASE.lease_seconds)
    bench.store.recover()
    assert ended, "it waited longer than it could trust the answer"
    assert not (bench.jobs_dir / job.id / "been-here").exists()


async def test_a_claim_that_answers_late_is_handed_back(bench: Bench) -> None:
    """Its lease is alive but no longer trusted: to wait for its end would cost a retry."""
    job = await bench.submit(value=1)
    bench.store.trouble("hangs", "claim")
    async with bench.working():
        await aeventually(lambda: "claim" in bench.store.asked)
        asked = SystemClock().monotonic()
        await aeventually(lambda: SHORT_LEASE.trusted_until(asked) < SystemClock().monotonic())
        bench.store.recover()
        ended = await bench.ended(job)
    assert (ended.status, ended.fence, ended.retries_left) == ("succeeded", 2, 2)
    assert "job.released" in await bench.log(job)
