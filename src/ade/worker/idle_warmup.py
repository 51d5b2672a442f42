"""Start interpreters in advance, while there is nothing else to do.

A zygote that has imported a large library starts in a second or more; the first job that needs it
would wait for that. So a worker that has been idle for a while starts, one at a time, the zygotes
that runs and cells are likely to need. They take at most half of the memory for zygotes, so that
those of jobs are not stopped for them.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog

from ade.kinds import JobInputs, Kinds
from ade.kinds.normalize import Normalize
from ade.kinds.object_execute import SLOW_IMPORTS, ExecuteInputs, ObjectExecute
from ade.sandbox.pool import Pool
from ade.sandbox.runtime_environment import own_environment
from ade.sandbox.zygote_client import SetupFailed, ZygoteGone
from ade.worker.job_io import NoJobIO
from ade.worker.worker import Worker

log = structlog.get_logger()


async def warm_up_when_idle(pool: Pool, worker: Worker, kinds: Kinds, idle_seconds: float) -> None:
    """Start the zygotes that jobs are likely to need, each after some idle time."""
    async for preload in likely_preloads(kinds):
        is_idle = False
        while not is_idle:
            await asyncio.sleep(idle_seconds)
            is_idle = worker.running == 0
        try:
            has_room = await pool.prepare(own_environment(preload))
        except (ZygoteGone, SetupFailed, OSError) as error:
            log.warning("no interpreter was started in advance", reason=type(error).__name__)
            return
        if not has_room:
            return


async def likely_preloads(kinds: Kinds) -> AsyncIterator[tuple[str, ...]]:
    """Yield the sets of modules that jobs find imported: of runs, of cells, then of other kinds."""
    names = kinds.names()
    if Normalize.name in names:
        yield Normalize.preload
    if ObjectExecute.name in names:
        for library in SLOW_IMPORTS:
            inputs = ExecuteInputs(source=f"import {library}").model_dump(mode="json")
            cell = JobInputs("", "", 0, inputs, {"formats": []})
            prepared = await ObjectExecute().prepare(cell, NoJobIO())
            if prepared.preload:
                yield prepared.preload
    others = {kinds.named(name).preload for name in names}
    for preload in sorted(others - {(), Normalize.preload}):
        yield preload
