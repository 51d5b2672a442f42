"""A job's folder holds untrusted files: nothing found there harms the worker or the job."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.worker.bench import Bench, ref

from ade.domain.job import Status, StopRequest
from ade.domain.outcome import Outcome
from ade.events.event_file import EventFileExporter
from ade.kernel import Kernel
from ade.kinds import Kinds
from ade.kinds.echo import Echo
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.spec import RunSpec
from ade.stages.stop import Stop
from ade.worker.job_files import write_text
from ade.worker.runner import RunHandle
from ade.worker.subprocess_runner import SubprocessRun, SubprocessRunner
from ade.worker.worker import Worker, WorkerRules


def test_a_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "logs.txt").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic links"):
        write_text(tmp_path / "logs.txt", "not mine")
    assert outside.read_text() == "mine"


def test_unencodable_text_is_written_with_a_mark(tmp_path: Path) -> None:
    write_text(tmp_path / "logs.txt", "half \ud800")
    assert (tmp_path / "logs.txt").read_text() == "half ?"


class Litterer(SubprocessRunner):
    """Leave a folder where the logs belong, as a job could."""

    def start(self, spec: RunSpec, tell: OnProgress) -> SubprocessRun:
        assert spec.folder is not None
        (spec.folder / "logs.txt").mkdir()
        return super().start(spec, tell)


async def test_a_job_whose_logs_cannot_be_kept_is_done_all_the_same(bench: Bench) -> None:
    job = await bench.submit(value=1, print="hello")
    async with bench.working(Litterer()):
        ended = await bench.ended(job)
    assert (ended.status, ended.fence) == ("succeeded", 1)
    assert (await bench.result(job))["outputs"]["stdout"] == "hello\n"


async def test_a_cancel_counts_although_its_copy_cannot_be_written(
    bench: Bench, tmp_path: Path
) -> None:
    kernel = Kernel(
        bench.store, bench.kernel.settings, exporter=EventFileExporter(bench.store, bench.jobs_dir)
    )
    job = await bench.submit(value=1)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (bench.jobs_dir / job.id).mkdir(parents=True)
    (bench.jobs_dir / job.id / "events.ndjson").symlink_to(outside)
    stopped = await kernel.stop(Stop(ref(job), StopRequest.CANCEL, "me"))
    assert stopped.status == "cancelled"
    assert outside.read_text() == "mine"


class Once(Echo):
    """Allow no second start."""

    name = "once"
    retries = 0


class Held:
    """Run until killed."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self._over = asyncio.Event()

    isolation = ()
    refusal = None

    def start(self, spec: RunSpec, tell: OnProgress) -> RunHandle:
        self.started.set()
        return self

    def when_started(self, call: Callable[[], None]) -> None:
        call()

    async def outcome(self) -> Outcome:
        await self._over.wait()
        return Outcome(Status.FAILED)

    def stop(self) -> None:
        self._over.set()

    def kill(self) -> None:
        self._over.set()

    def time_out(self) -> None:
        self._over.set()


async def test_a_kind_that_forbids_it_is_not_started_again_by_a_hand_back(bench: Bench) -> None:
    job = await bench.submit(kind="once", retries=0, value=1)
    runner = Held()
    worker = Worker(
        "worker",
        kernel=bench.kernel,
        kinds=Kinds([Once()]),
        runner=runner,
        jobs_dir=bench.jobs_dir,
        rules=WorkerRules(slots=1),
    )
    working = asyncio.create_task(worker.run())
    await runner.started.wait()
    worker.drain()
    worker.drain()
    await working
    ended = await bench.ended(job)
    assert (ended.status, ended.fence) == ("failed", 1)
    assert json.loads(ended.error or "{}")["code"] == "WORKER_STOPPED"
