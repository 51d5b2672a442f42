"""Kill zygotes while they run jobs: `python -m tests.sandbox.zygote_chaos [JOBS [SEED]]`

Every job must end with its own right result or with INTERNAL_ERROR, which a worker tries again;
none may be lost, none may get another's result, and afterwards the pool must work as before.
"""

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from ade.domain.limits import Limits
from ade.sandbox.layers import landlock
from ade.sandbox.pool import Layers, Pool, PoolRules
from ade.sandbox.runtime_environment import RUNTIME, Environment, own_environment
from ade.sandbox.spec import RunSpec, WorkerBounds
from ade.sandbox.supervisor import SandboxedRun
from ade_engine.entry.cell import cell_inputs

AT_ONCE = 4
KILLS_PER_JOB = 0.1
JOB_SECONDS_MAX = 30.0
LIMITS = Limits(timeout_ms=20_000, cpu_ms=10_000, memory_mb=256, max_output_kb=16, max_artifacts=0)
SOURCE = "import time\ntime.sleep(pause)\nprint(number)\n[number, secret]"


class Chaos:
    """Run jobs and kill zygotes, by chance that can be had again."""

    def __init__(self, pool: Pool, seed: int) -> None:
        self._pool = pool
        self._chance = random.Random(seed)
        self._environment = Environment(
            key="chaos",
            interpreter=Path(sys.executable),
            preload=RUNTIME,
            readable=own_environment().readable,
        )
        self.ends: Counter[str] = Counter()
        self.kills = 0

    async def run(self, jobs: int) -> None:
        """Run so many jobs, a few at once, while zygotes die."""
        turns = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for number in range(jobs):
                await turns.acquire()
                job = group.create_task(self._job(number))
                job.add_done_callback(lambda _: turns.release())
                if self._chance.random() < KILLS_PER_JOB:
                    group.create_task(self._kill())

    async def _job(self, number: int) -> None:
        secret = f"secret of {number}: {self._chance.random()}"
        pause = self._chance.choice([0, 0, 0.01, 0.05])
        self.ends[await self.end_of(number, secret, pause)] += 1

    async def end_of(self, number: int, secret: str, pause: float = 0) -> str:
        """Run one job and say how it ended; a result that is not its own is an error here."""
        parameters = {"number": number, "secret": secret, "pause": pause}
        spec = RunSpec(
            entry="ade_engine.entry.cell",
            inputs=cell_inputs(SOURCE, parameters),
            limits=LIMITS,
        )
        running = SandboxedRun(
            self._pool, spec, self._environment, lambda progress: None, WorkerBounds()
        )
        async with asyncio.timeout(JOB_SECONDS_MAX):
            outcome = await running.outcome()
        if outcome.error is not None:
            kind = f"{outcome.error.category}/{outcome.error.code}"
            assert kind.startswith("INTERNAL_ERROR/"), f"{number}: {outcome.error}"
            return kind
        assert outcome.result is not None
        outputs = outcome.result["outputs"]
        assert outputs["result_json"] == [number, secret], f"{number} was given {outputs}"
        assert outputs["stdout"] == f"{number}\n", f"{number} printed {outputs}"
        return "right"

    async def _kill(self) -> None:
        """Kill a zygote at some moment of the jobs that run now, started or not."""
        await asyncio.sleep(self._chance.uniform(0, 0.05))
        alive = [zygote.pid for zygote in self._pool.zygotes if zygote.pid]
        if alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._chance.choice(alive), signal.SIGKILL)
                self.kills += 1


def own_layers() -> Layers:
    """Return the layers that this process can put up, with namespaces."""
    is_root = os.geteuid() == 0
    return Layers("full", landlock.version(), is_root, 210_000 if is_root else None)


async def main(jobs: int, seed: int) -> None:
    """Run the chaos and tell what came of it."""
    pool = Pool(own_layers(), PoolRules())
    chaos = Chaos(pool, seed)
    started = time.monotonic()
    try:
        await chaos.run(jobs)
        after = [await chaos.end_of(n, "afterwards") for n in range(10)]
    finally:
        await pool.close()
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"{jobs} jobs in {seconds:.1f} s, {chaos.kills} zygotes killed, seed {seed}: "
        f"{dict(chaos.ends)}; afterwards {dict(Counter(after))}\n"
    )
    assert sum(chaos.ends.values()) == jobs, "a job was lost"
    assert set(after) == {"right"}, "the pool did not recover"


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    asyncio.run(main(*(arguments + [1000, random.randrange(1 << 30)][len(arguments) :])))
