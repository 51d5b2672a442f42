"""The worker against a real kernel with real children: ends, stops, drain."""

import asyncio
import gc
import json
from typing import Any

import pytest
from tests.processes import aeventually, is_alive
from tests.unit.worker.bench import ROGUES, Bench, ref

from ade.domain.events import EventType
from ade.domain.job import StopRequest
from ade.domain.limits import Limits
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.spec import RunSpec
from ade.stages.force import Force, OperatorAction
from ade.stages.resume import Resume
from ade.store.rows import JobRef, JobRow
from ade.worker.runner import RunHandle
from ade.worker.subprocess_runner import SubprocessRunner

# Far less than a renewal of the bench, far more than a busy machine needs.
AT_ONCE_SECONDS = 10.0


async def test_a_job_succeeds(bench: Bench) -> None:
    job = await bench.submit(value={"a": 1}, print="hello")
    async with bench.working():
        ended = await bench.ended(job)
    assert (ended.status, ended.fence, ended.error) == ("succeeded", 1, None)
    assert (await bench.result(job))["outputs"]["result_json"] == {"a": 1}
    assert await bench.log(job) == ["job.queued", "job.started", "job.succeeded"]
    assert json.loads(ended.usage or "{}")["memory_mb_peak"] > 0


async def test_the_folder_tells_the_story(bench: Bench) -> None:
    job = await bench.submit(value=1, print="hello")
    async with bench.working():
        await bench.ended(job)
    folder = bench.jobs_dir / job.id
    assert {file.name for file in folder.iterdir()} == {
        "run-request.json",
        "logs.txt",
        "events.ndjson",
    }
    assert (folder / "logs.txt").read_text() == "hello\n"
    lines = [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]
    assert [line["event"] for line in lines] == await bench.log(job)


async def test_a_job_fails(bench: Bench) -> None:
    job = await bench.submit(fail="raise")
    async with bench.working():
        ended = await bench.ended(job)
    assert (ended.status, ended.fence) == ("failed", 1)  # a user's error is not tried again
    assert json.loads(ended.error or "{}")["code"] == "PYTHON_EXCEPTION"


async def test_a_job_is_out_of_time(bench: Bench) -> None:
    limits = Limits(300, 30_000, 512, 1, 0)
    job = await bench.submit(do="ignore_sigterm", limits=limits)
    async with bench.working():
        ended = await bench.ended(job)
    assert ended.status == "timed_out"
    error = json.loads(ended.error or "{}")
    assert (error["code"], error["details"]) == ("TIMED_OUT", {"timeout_ms": 300})


async def test_code_that_needs_isolation_is_refused(bench: Bench) -> None:
    job = await bench.submit(kind="untrusted", do="tell_pid", retries=0)
    async with bench.working(
        SubprocessRunner(command=ROGUES, refusal="No isolation is available.")
    ):
        ended = await bench.ended(job)
    assert ended.status == "failed"
    error = json.loads(ended.error or "{}")
    assert (error["code"], error["message"]) == (
        "SANDBOX_UNAVAILABLE",
        "No isolation is available.",
    )


async def test_code_that_needs_isolation_runs_at_level_none(bench: Bench) -> None:
    job = await bench.submit(kind="untrusted", do="boast", size_bytes=3)
    async with bench.working():
        assert (await bench.ended(job)).status == "succeeded"


async def _status(bench: Bench, job: JobRow) -> str | None:
    ref = JobRef(job.workspace_id, job.id)
    found = await bench.kernel.read(lambda reading: reading.read_job(ref))
    return found and found.status


async def test_a_job_of_a_kind_that_is_not_installed_waits_for_another_worker(
    bench: Bench,
) -> None:
    waiting = await bench.submit(kind="gone")
    job = await bench.submit(value=1)
    async with bench.working():
        assert (await bench.ended(job)).status == "succeeded"
        [worker] = await bench.kernel.read(lambda reading: reading.list_workers(9))
    assert "echo" in json.loads(worker.kinds)
    assert await _status(bench, waiting) == "queued"
    assert await bench.kernel.read(lambda reading: reading.list_workers(9)) == []


class BrokenRunner:
    """Fail to start anything."""

    isolation: tuple[str, ...] = ()
    refusal: str | None = None

    def start(self, spec: RunSpec, tell: OnProgress) -> RunHandle:
        """Be out of processes."""
        raise BlockingIOError(11, "Resource temporarily unavailable")


async def test_trouble_of_the_worker_is_not_the_jobs(bench: Bench) -> None:
    job = await bench.submit(value=1)
    async with bench.working(BrokenRunner()):
        report = await bench.event(job, EventType.RETRIED)
    assert json.loads(report.data)["error"] == {
        "category": "INTERNAL_ERROR",
        "code": "WORKER_ERROR",
    }
    found = await bench.job(job)
    assert (found.status, found.retries_left) == ("queued", 1)


async def test_two_troubles_at_once_leave_no_error_behind(bench: Bench) -> None:
    """In a sandbox the folder is laid out beside the job; here neither can be."""
    left: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: left.append(said["message"]))
    runner = BrokenRunner()
    runner.isolation = ("namespaces",)
    job = await bench.submit(value=1)
    bench.jobs_dir.mkdir(exist_ok=True)
    (bench.jobs_dir / job.id).write_text("in the way")
    async with bench.working(runner):
        await bench.event(job, EventType.RETRIED)
    gc.collect()
    assert left == []


@pytest.mark.parametrize(
    ("request_", "status"), [(StopRequest.CANCEL, "cancelled"), (StopRequest.PAUSE, "paused")]
)
@pytest.mark.parametrize("do", ["tell_pid", "ignore_sigterm"])
async def test_a_stop_reaches_the_child_at_once(
    bench: Bench, request_: StopRequest, status: str, do: str
) -> None:
    job = await bench.submit(do=do)
    async with bench.working():
        (pid,) = await bench.pids(job)
        async with asyncio.timeout(AT_ONCE_SECONDS):
            await bench.stop(job, request_)
            await bench.event(job, EventType(f"job.{status}"))
            await aeventually(lambda: not is_alive(pid))
        assert (await bench.job(job)).status == status


async def test_a_wish_to_cancel_outweighs_one_to_pause(bench: Bench) -> None:
    job = await bench.submit(do="ignore_sigterm")
    runner = SubprocessRunner(command=ROGUES, stop_grace_seconds=1.0)
    async with bench.working(runner):
        await bench.pids(job)
        await bench.stop(job, StopRequest.PAUSE)
        await bench.stop(job, StopRequest.CANCEL)
        assert (await bench.ended(job)).status == "cancelled"


async def test_a_paused_job_goes_on_when_resumed(bench: Bench) -> None:
    job = await bench.submit(do="linger_once")
    async with bench.working():
        await bench.pids(job)
        await bench.stop(job, StopRequest.PAUSE)
        await bench.event(job, EventType.PAUSED)
        await bench.kernel.resume(Resume(ref(job), "someone", operator=False))
        ended = await bench.ended(job)
    assert (ended.status, ended.fence) == ("succeeded", 2)


async def test_progress_is_throttled_and_the_last_of_it_recorded(bench: Bench) -> None:
    job = await bench.submit(do="tell_much", steps=40, pause_seconds=0.02)
    async with bench.working():
        ended = await bench.ended(job)
    events = await bench.events(job)
    report = [json.loads(event.data) for event in events if event.type == EventType.PROGRESS]
    seconds = (events[-1].at - events[1].at) / 1e6
    assert 2 <= len(report) <= 2 + seconds / 0.5
    assert report[-1] == {"done": 40, "total": 40, "message": ""}
    assert json.loads(ended.progress or "{}") == report[-1]
    assert events[-1].type == EventType.SUCCEEDED


class CountingRunner:
    """Start real children, and count how many run at once."""

    isolation: tuple[str, ...] = ()
    refusal: str | None = None

    def __init__(self) -> None:
        self._runner = SubprocessRunner()
        self._now = 0
        self.most = 0

    def start(self, spec: RunSpec, tell: OnProgress) -> RunHandle:
        """Start a child."""
        self._now += 1
        self.most = max(self.most, self._now)
        running = self._runner.start(spec, tell)
        outcome = running.outcome

        async def counted() -> Any:
            try:
                return await outcome()
            finally:
                self._now -= 1

        running.outcome = counted  # type: ignore[method-assign]
        return running


@pytest.mark.parametrize("slots", [1, 3])
async def test_there_are_never_more_attempts_than_slots(bench: Bench, slots: int) -> None:
    runner = CountingRunner()
    jobs = [await bench.submit(value=n, sleep_ms=20) for n in range(8)]
    async with bench.working(runner, slots=slots) as worker:
        assert worker.slots == slots
        for job in jobs:
            assert (await bench.ended(job)).status == "succeeded"
    assert runner.most == slots
    assert worker.running == 0


# --- drain ------------------------------------------------------------------------------------


async def test_a_report_that_is_refused_ends_the_attempt(bench: Bench) -> None:
    """The server says that the attempt is over: that need not wait for a renewal."""
    job = await bench.submit(value=1, sleep_ms=60_000, steps=600)
    async with bench.working() as worker:
        await bench.event(job, EventType.PROGRESS)
        bench.store.trouble("hangs", "renew")
        forced = Force(ref(job), OperatorAction.CANCEL, "someone", force=True)
        await bench.kernel.force(forced)
        await aeventually(lambda: worker.running == 0)
        assert "finish" not in bench.store.asked
    assert (await bench.job(job)).status == "cancelled"


async def test_drain_lets_jobs_finish(bench: Bench) -> None:
    running = await bench.submit(value="done", steps=1, sleep_ms=400)
    worker = bench.worker(slots=1)
    task = asyncio.create_task(worker.run())
    await bench.event(running, EventType.STARTED)
    waiting = await bench.submit(value="later")
    worker.drain()
    await task
    assert (await bench.job(running)).status == "succeeded"
    assert await _status(bench, waiting) == "queued"


async def test_drain_past_the_grace_hands_back_without_costing_a_retry(bench: Bench) -> None:
    job = await bench.submit(do="linger_once", retries=1)
    worker = bench.worker(drain_grace_seconds=0.1)
    task = asyncio.create_task(worker.run())
    (pid,) = await bench.pids(job)
    worker.drain()
    await task
    assert not is_alive(pid)
    found = await bench.job(job)
    assert (found.status, found.retries_left, found.lease_owner) == ("queued", 1, None)
    async with bench.working():
        ended = await bench.ended(job)
    assert (ended.status, ended.fence, ended.retries_left) == ("succeeded", 2, 1)
    assert (await bench.result(job))["outputs"]["result_json"] == "the second time"
    assert [word for word in await bench.log(job) if word.startswith("job.")] == [
        "job.queued",
        "job.started",
        "job.released",
        "job.started",
        "job.succeeded",
    ]


async def test_a_second_drain_hands_back_at_once(bench: Bench) -> None:
    job = await bench.submit(do="tell_pid")
    worker = bench.worker(drain_grace_seconds=3600)
    task = asyncio.create_task(worker.run())
    (pid,) = await bench.pids(job)
    worker.drain()
    worker.drain()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    assert not is_alive(pid)
    assert (await bench.job(job)).status == "queued"


async def test_a_job_that_was_cancelled_is_not_handed_back(bench: Bench) -> None:
    job = await bench.submit(do="ignore_sigterm")
    runner = SubprocessRunner(command=ROGUES, stop_grace_seconds=3600)
    worker = bench.worker(runner, drain_grace_seconds=3600)
    task = asyncio.create_task(worker.run())
    await bench.pids(job)
    await bench.stop(job, StopRequest.CANCEL)
    worker.drain()
    worker.drain()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    assert (await bench.job(job)).status == "cancelled"


async def test_a_result_that_is_there_is_not_handed_back(bench: Bench) -> None:
    """The child has ended well while its end could not be recorded yet: done is done."""
    job = await bench.submit(value="done")
    bench.store.trouble("fails", "finish")
    worker = bench.worker(drain_grace_seconds=3600)
    task = asyncio.create_task(worker.run())
    await aeventually(lambda: "finish" in bench.store.asked)
    worker.drain()
    worker.drain()
    bench.store.recover()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    assert (await bench.job(job)).status == "succeeded"


async def test_drain_does_not_lose_a_claim_that_is_under_way(bench: Bench) -> None:
    job = await bench.submit(value="done")
    bench.store.trouble("hangs", "claim")
    worker = bench.worker()
    task = asyncio.create_task(worker.run())
    await aeventually(lambda: "claim" in bench.store.asked)
    worker.drain()
    bench.store.recover()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    assert (await bench.job(job)).status == "succeeded"


async def test_drain_ends_also_when_the_last_claim_fails(bench: Bench) -> None:
    bench.store.trouble("hangs", "claim")
    worker = bench.worker()
    task = asyncio.create_task(worker.run())
    await aeventually(lambda: "claim" in bench.store.asked)
    bench.store.fail_what_hangs()
    worker.drain()
    async with asyncio.timeout(AT_ONCE_SECONDS):
        await task
    assert worker.running == 0
