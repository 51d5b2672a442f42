"""Errands: small pieces of work on strangers' files that a request waits for.

A preview of a document, a check of a configuration. They run where jobs run and as jobs do, behind
the same walls, but are no jobs: they are bounded to seconds, leave nothing, and are not repeated.
A few run at once beside the jobs, a few more wait; further ones are turned away.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ade.domain.errors import Unavailable
from ade.domain.job import Status
from ade.domain.limits import Limits
from ade.domain.outcome import Outcome, located, timed_out_error
from ade.kinds.normalize import ENGINE
from ade.sandbox.spec import RunSpec
from ade.worker.job_files import place_file
from ade.worker.runner import RunHandle, Runner, see_to_the_end

AT_ONCE = 2
WAITING_MAX = 32
LIMITS = Limits(timeout_ms=15_000, cpu_ms=15_000, memory_mb=768, max_output_kb=64, max_artifacts=0)


class Errands:
    """Run errands, a few at once."""

    def __init__(self, runner: Runner, limits: Limits = LIMITS) -> None:
        self._runner = runner
        self._limits = limits
        self._free = asyncio.Semaphore(AT_ONCE)
        self._asked = 0

    async def run(
        self,
        entry: str,
        inputs: dict[str, Any],
        files: Mapping[str, Path],
        environment: str | None = None,
    ) -> Outcome:
        """Run an entry on some files and wait for what comes of it."""
        if self._runner.refusal is not None:
            raise Unavailable(self._runner.refusal)
        if self._asked >= AT_ONCE + WAITING_MAX:
            raise Unavailable("Too many previews and checks are waiting; try again shortly.")
        self._asked += 1
        try:
            async with self._free:
                with tempfile.TemporaryDirectory(prefix="ade-errand-") as folder:
                    place = Path(folder)
                    if not self._runner.isolation:  # it works in the folder itself
                        await asyncio.to_thread(_copy, files, place)
                    spec = RunSpec(
                        entry=entry,
                        inputs=inputs,
                        limits=self._limits,
                        folder=place,
                        files=files,
                        environment=environment,
                        preload=ENGINE,
                    )
                    return await self._outcome(self._runner.start(spec, lambda _: None))
        finally:
            self._asked -= 1

    async def _outcome(self, running: RunHandle) -> Outcome:
        """Wait for the end, and kill what takes too long or is not waited for any more."""
        outcome, timed_out = await see_to_the_end(running, self._limits.timeout_ms / 1000)
        if timed_out:
            error = located(timed_out_error(self._limits.timeout_ms), outcome.location)
            return Outcome(Status.FAILED, error=error)
        return outcome


def _copy(files: Mapping[str, Path], folder: Path) -> None:
    for name, source in files.items():
        place_file(source, folder / name, copied=True)
