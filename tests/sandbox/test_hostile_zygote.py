"""A zygote may send anything, or nothing: the worker lives, and the next job runs."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import aeventually
from tests.sandbox import fake_zygote
from tests.sandbox.conftest import IS_FAST
from tests.sandbox.zygote_chaos import LIMITS, own_layers

from ade.domain.outcome import Outcome
from ade.sandbox import zygote_client
from ade.sandbox.layers import landlock
from ade.sandbox.pool import Layers, Pool, PoolRules
from ade.sandbox.runtime_environment import RUNTIME, Environment, own_environment
from ade.sandbox.spec import RunSpec, WorkerBounds
from ade.sandbox.supervisor import SandboxedRun
from ade_engine.entry.cell import cell_inputs

STAGES = ("hello_", "spawned_", "ended_", "ready_")
BEHAVIOURS = [name for name in vars(fake_zygote) if name.startswith(STAGES)]
# At level landlock a child makes no file system, and its folder is not taken from it.
BY_MOUNT = ("ready_with_file", "ready_with_root")
SILENT = [name for name in BEHAVIOURS if name.endswith(("_never", "_stopped"))]
HARMLESS = ("ended_with_huge_numbers", "ended_twice")
LEVELS = ["full"] if IS_FAST else ["full", "landlock"]
SECONDS_MAX = 30.0
LAG_SECONDS_MAX = 1.0
TICK_SECONDS = 0.01
KILL_SECONDS = 4.0
SILENCE_SECONDS = 1.0  # in place of what a zygote has to answer, start or report an end
PAGE = "x" * 1_000_000  # larger than what a line holds


def _layers(level: str) -> Layers:
    if level == "full":
        return own_layers()
    return Layers("landlock", landlock.version(), by_root=False, user_base=None)


class Worker:
    """Hold a pool whose zygotes are hostile or honest, and the loop that it lives in."""

    def __init__(self, level: str, place: Path) -> None:
        self.runner = asyncio.Runner()
        self.place = place
        self.pool = self.runner.run(self._pool(level))
        self.honest = Environment(
            key="honest",
            interpreter=Path(sys.executable),
            preload=RUNTIME,
            readable=own_environment().readable,
        )
        assert self.runner.run(self.run(self.honest, "6 * 7")).error is None
        self.opened = len(os.listdir("/proc/self/fd"))

    async def _pool(self, level: str) -> Pool:
        return Pool(_layers(level), PoolRules(spares=0), self.place)

    def hostile(self, behaviour: str) -> Environment:
        """Return an environment whose zygote behaves like this."""
        folder = self.place / f"packages-{behaviour}"
        folder.mkdir()
        code = Path(fake_zygote.__file__).read_text(encoding="utf-8")
        code = code.replace('BEHAVIOUR = "honest"', f"BEHAVIOUR = {behaviour!r}", 1)
        (folder / "fake.py").write_text(code)
        return Environment(
            key=behaviour,
            interpreter=Path(sys.executable),
            paths=(folder,),
            preload=("fake",),
            readable=(*own_environment().readable, folder),
        )

    async def run(self, environment: Environment, source: str) -> Outcome:
        """Run one job to its end, in bounded time."""
        inputs = cell_inputs(source, {"page": PAGE}, None)
        spec = RunSpec("ade_engine.entry.cell", inputs, LIMITS)
        running = SandboxedRun(self.pool, spec, environment, lambda _: None, WorkerBounds())
        ending = asyncio.create_task(running.outcome())
        timer = asyncio.get_running_loop().call_later(KILL_SECONDS, running.kill)
        async with asyncio.timeout(SECONDS_MAX):
            try:
                return await ending
            finally:
                timer.cancel()

    async def suffer(self, environment: Environment) -> tuple[Outcome, float]:
        """Run a job of a hostile environment; return its outcome and the longest pause."""
        loop = asyncio.get_running_loop()
        longest, last = 0.0, loop.time()

        async def tick() -> None:
            nonlocal longest, last
            while True:
                await asyncio.sleep(TICK_SECONDS)
                longest, last = max(longest, loop.time() - last - TICK_SECONDS), loop.time()

        ticking = asyncio.create_task(tick())
        try:
            return await self.run(environment, "6 * 7"), longest
        finally:
            ticking.cancel()

    async def is_as_before(self) -> None:
        """Wait until the hostile zygotes are gone, with all of their descriptors."""
        for zygote in self.pool.zygotes:
            if zygote.plan.paths:
                zygote.close()
        await aeventually(lambda: len(os.listdir("/proc/self/fd")) <= self.opened, seconds=10)

    def close(self) -> None:
        """Close the pool and its loop."""
        self.runner.run(self.pool.close())
        self.runner.close()


@pytest.fixture(scope="module", params=LEVELS)
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """Give a worker at a level."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o711)
        found = Worker(request.param, Path(name))
        yield found
        found.close()


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_worker_survives(
    worker: Worker, behaviour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if worker.pool.layers.level == "landlock" and behaviour.startswith("hello"):
        pytest.skip("what precedes the first request is the same at each level")
    with monkeypatch.context() as patch:
        if behaviour in SILENT:
            for name in ("START_SECONDS_MAX", "READY_SECONDS_MAX", "END_SECONDS_MAX"):
                patch.setattr(zygote_client, name, SILENCE_SECONDS)
        outcome, pause_seconds = worker.runner.run(worker.suffer(worker.hostile(behaviour)))
    assert pause_seconds < LAG_SECONDS_MAX, "the event loop was held up"
    _check(outcome, behaviour, worker.pool.layers.level)
    after = worker.runner.run(worker.run(worker.honest, "6 * 7"))
    assert after.error is None, after.error
    worker.runner.run(worker.is_as_before())


def _check(outcome: Outcome, behaviour: str, level: str) -> None:
    error: Any = outcome.error
    if behaviour in HARMLESS or (level == "landlock" and behaviour in BY_MOUNT):
        assert error is None, error
        assert outcome.usage["cpu_ms"] < SECONDS_MAX * 1000
        assert outcome.usage["memory_mb_peak"] < LIMITS.memory_mb
    else:
        assert error is not None
        assert error.category == "INTERNAL_ERROR", error
