"""ADE's kernel under the same clock: every job with its lane, priority, lease, fence and events.

`drain by N` makes the calls of a worker with N slots whose jobs all end together: on its event
loop, `finish_and_claim` records N ends and claims N jobs, until nothing is left. The scene "whole
worker" runs `Worker` itself with a runner that does nothing, so that it also counts what a worker
does around each job: a folder, the request and the events in files, tasks and metrics. Workers are
processes on PostgreSQL; on SQLite, which one process owns, tasks of one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, TypeVar

import structlog
import uvloop

from ade.app.directory import Directory
from ade.domain.job import Status
from ade.domain.limits import Limits
from ade.domain.outcome import Outcome
from ade.kernel import Kernel
from ade.kinds import load_kinds
from ade.process.compose import collect_garbage_rarely, keep_freed_memory
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.spec import RunSpec
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Submission
from ade.store.listener import listen
from ade.store.migrate import upgrade
from ade.store.session import Session
from ade.worker.worker import Worker, WorkerRules
from bench.ade_scenes import add_finished
from bench.cases import BULK_ROWS, Case, Contestant, Sample
from bench.goals import (
    BLOCKED_LANE,
    FEW_WAITING,
    IN_PROCESS,
    MANY_FINISHED,
    MANY_WAITING,
    OVER_NOTIFY,
    WHOLE_WORKER,
)

# A worker names the kinds that it can run.
KINDS = frozenset({"echo", "build", "normalize", "document.export"})
LIMITS = Limits(300_000, 60_000, 512, 256, 50)
DONE = Outcome(Status.SUCCEEDED, result={"outputs": {"result_json": None}})
LANE_JOBS = 20_000
FINISHED_JOBS = 1_000_000
FEW, MANY = 1_000, 100_000
PARTS_OF_FEW = 10
WHOLE_WORKER_JOBS = 10_000
Result = TypeVar("Result")

DRAINS = tuple(
    Case("drain", batch, workers, jobs_max=20_000 if batch == 1 else None)
    for workers in (1, 4)
    for batch in (1, 10, 100)
)
SCENES = (
    *(
        Case("drain", 100, scene=scene)
        for scene in (BLOCKED_LANE, FEW_WAITING, MANY_WAITING, MANY_FINISHED)
    ),
    *(Case("drain", slots, scene=WHOLE_WORKER, jobs_max=WHOLE_WORKER_JOBS) for slots in (2, 100)),
)


class AdeQueue(Contestant):
    """ADE's kernel over one database."""

    name = "ADE"
    cases: ClassVar[tuple[Case, ...]]

    def __init__(self, url: str) -> None:
        super().__init__(self.database_url(url))
        keep_freed_memory()  # as every server and worker of ADE does
        collect_garbage_rarely()
        upgrade(self.url)
        self._scene = ""
        session = Session(self.url)
        directory = Directory(session)
        directory.bootstrap()
        workspace = asyncio.run(directory.find_workspace("default"))
        assert workspace is not None
        session.close()
        self._workspace_id = workspace.id
        self._kernel = open_kernel(self.url)

    @staticmethod
    def database_url(url: str) -> str:
        return url

    def submission(self, number: int, target_id: str | None = None) -> Submission:
        return Submission(
            self._workspace_id,
            "echo",
            f'{{"inputs": {{"value": {number}}}}}',
            LIMITS,
            "bench",
            target_id=target_id,
        )

    def enqueue(self, count: int) -> Sample:
        asked = [self.submission(number) for number in range(count)]
        submit = self._kernel.now.submit
        began = time.perf_counter()
        for ask in asked:
            submit(ask)
        return Sample(count, time.perf_counter() - began)

    def enqueue_bulk(self, count: int, target_id: str | None = None) -> Sample:
        asked = [self.submission(number, target_id) for number in range(count)]
        began = time.perf_counter()
        for start in range(0, count, BULK_ROWS):
            self._kernel.now.many("submit", asked[start : start + BULK_ROWS])
        return Sample(count, time.perf_counter() - began)

    def arrange(self, scene: str) -> None:
        self._scene = scene
        if scene == BLOCKED_LANE:
            self.enqueue_bulk(LANE_JOBS, "blocked")
            [claim] = self._kernel.now.claim(ClaimRequest("blocker", 1))
            failed = Outcome(Status.FAILED)
            self._kernel.now.finish(Finish(claim, failed))
        elif scene == MANY_FINISHED:
            add_finished(self.url, self._workspace_id, FINISHED_JOBS)

    def fill(self, count: int) -> None:
        size = {FEW_WAITING: FEW, MANY_WAITING: MANY, WHOLE_WORKER: WHOLE_WORKER_JOBS}.get(
            self._scene, count
        )
        self.enqueue_bulk(size)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        if self._scene == WHOLE_WORKER:
            return run(drain_by_worker(self._kernel, count, slots=batch))
        if self._scene != FEW_WAITING:
            return self._drain(count, batch, workers)
        parts = []
        for part in range(PARTS_OF_FEW):
            if part:
                self.fill(FEW)
            parts.append(self._drain(FEW, batch, workers))
        return Sample(sum(part.jobs for part in parts), sum(part.seconds for part in parts))

    def _drain(self, count: int, batch: int, workers: int) -> Sample:
        raise NotImplementedError

    def pickup(self, count: int) -> Sample:
        return run(pick_up(self, count, worker_kernel=self._kernel))


class AdePostgres(AdeQueue):
    database = "postgres"
    cases = (Case("enqueue"), Case("bulk"), *DRAINS, *SCENES, Case("pickup", scene=OVER_NOTIFY))

    @staticmethod
    def database_url(url: str) -> str:
        return url.replace("postgresql://", "postgresql+psycopg://", 1)

    def _drain(self, count: int, batch: int, workers: int) -> Sample:
        self._kernel.store.close()  # before the fork: threads and connections stay behind
        fork = multiprocessing.get_context("fork")
        ready, reports = fork.Barrier(workers), fork.SimpleQueue()
        order = (self.url, count // workers, batch, ready, reports)
        crew = [fork.Process(target=drain_in_process, args=order) for _ in range(workers)]
        for worker in crew:
            worker.start()
        for worker in crew:
            worker.join()
        if any(worker.exitcode for worker in crew):
            raise RuntimeError("a worker of ADE failed")
        done, began, ended = zip(*(reports.get() for _ in crew), strict=True)
        self._kernel = open_kernel(self.url)
        return Sample(sum(done), max(ended) - min(began))

    def pickup(self, count: int) -> Sample:
        """The worker has its own store and hears of work by NOTIFY alone."""
        kernel = open_kernel(self.url)
        listener = listen(kernel.store, kernel.notifier.publish)  # type: ignore[arg-type]
        assert listener is not None
        try:
            return run(pick_up(self, count, worker_kernel=kernel))
        finally:
            listener.close()


class AdeSqlite(AdeQueue):
    database = "sqlite"
    cases = (Case("enqueue"), Case("bulk"), *DRAINS, *SCENES, Case("pickup", scene=IN_PROCESS))

    @staticmethod
    def database_url(url: str) -> str:
        return f"sqlite:///{url}"

    def _drain(self, count: int, batch: int, workers: int) -> Sample:
        return run(drain_together(self._kernel, count, batch, workers))


def open_kernel(url: str) -> Kernel:
    return Kernel(Session(url), KernelSettings(queue_size=0))


async def drain_share(kernel: Kernel, name: str, count: int, batch: int) -> int:
    """Make a worker's calls until its share is done: finish what was claimed, claim the next."""
    request, done, ends = ClaimRequest(name, batch, kinds=KINDS), 0, list[Finish]()
    while True:
        request.limit = min(batch, count - done - len(ends))
        answer = await kernel.finish_and_claim(ends, request)
        done += len(ends)
        if not answer.claims:
            return done
        ends = [Finish(claim, DONE) for claim in answer.claims]


async def drain_together(kernel: Kernel, count: int, batch: int, workers: int) -> Sample:
    share = count // workers
    began = time.perf_counter()
    done = await asyncio.gather(
        *(drain_share(kernel, f"worker {number}", share, batch) for number in range(workers))
    )
    return Sample(sum(done), time.perf_counter() - began)


Report = tuple[int, float, float]


def drain_in_process(
    url: str, count: int, batch: int, ready: Barrier, reports: SimpleQueue[Report]
) -> None:
    kernel = open_kernel(url)
    kernel.now.read(lambda reading: reading.workspace_ids())
    ready.wait(30)
    began = time.perf_counter()
    name = f"worker {multiprocessing.current_process().pid}"
    done = run(drain_share(kernel, name, count, batch))
    reports.put((done, began, time.perf_counter()))
    kernel.store.close()


class NoRunner:
    """Run nothing: note when a job would have started."""

    isolation = ("none of it is run",)
    refusal = None

    def __init__(self) -> None:
        self.started: asyncio.Queue[float] = asyncio.Queue()

    def start(self, spec: RunSpec, on_progress: OnProgress) -> NoRunner:
        self.started.put_nowait(time.perf_counter())
        return self

    async def outcome(self) -> Outcome:
        return DONE

    def stop(self) -> None:
        """Nothing runs."""

    kill = time_out = stop


def run(work: Coroutine[None, None, Result]) -> Result:
    """Run on the event loop that every server and worker of ADE runs on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@asynccontextmanager
async def working(kernel: Kernel, slots: int) -> AsyncIterator[tuple[Worker, NoRunner]]:
    """Run a worker of ADE whose jobs do nothing."""
    runner = NoRunner()
    with TemporaryDirectory() as folder:
        worker = Worker(
            "bench",
            kernel=kernel,
            kinds=load_kinds(),
            runner=runner,
            jobs_dir=Path(folder),
            rules=WorkerRules(slots=slots),
        )
        task = asyncio.create_task(worker.run())
        yield worker, runner
        worker.drain()
        await task


async def drain_by_worker(kernel: Kernel, count: int, slots: int) -> Sample:
    """Run a worker of ADE until nothing is left to claim and every end is recorded."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    began = time.perf_counter()
    async with working(kernel, slots) as (worker, runner):
        while runner.started.qsize() < count or worker.running:  # noqa: ASYNC110 - a ms in seconds
            await asyncio.sleep(0.001)
        seconds = time.perf_counter() - began
    return Sample(count, seconds)


async def pick_up(queue: AdeQueue, count: int, worker_kernel: Kernel) -> Sample:
    """Submit to an idle worker of ADE, one job at a time."""
    latencies = []
    async with working(worker_kernel, slots=1) as (worker, runner):
        for number in range(count):
            while worker.running:  # noqa: ASYNC110 - outside of what is timed
                await asyncio.sleep(0.001)
            submission = queue.submission(number)
            began = time.perf_counter()
            await queue._kernel.submit(submission)
            latencies.append(await runner.started.get() - began)
    return Sample(count, sum(latencies), tuple(latencies))
