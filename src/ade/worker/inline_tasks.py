"""Inline tasks: short work on untrusted files that a request waits for.

A preview of a document, a check of a configuration. They run where jobs run, in the same sandbox,
but are not jobs: they are bounded to half a minute, leave nothing, and are not repeated. They have
a pool of their own beside the slots of jobs (`ADE_INLINE_TASKS`), which is shared fairly:

- a workspace runs at most all but one of them at once, so that others need not wait for it;
- where several workspaces wait, they take turns;
- a workspace has at most WAITING_PER_WORKSPACE_MAX that wait, and the server WAITING_MAX. A request
  beyond that is rejected with 503.
"""

import asyncio
import tempfile
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
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

WAITING_MAX = 64
WAITING_PER_WORKSPACE_MAX = 16
# A package that is slow to import must not hold a slot that others wait for.
START_SECONDS_MAX = 20.0
LIMITS = Limits(timeout_ms=15_000, cpu_ms=15_000, memory_mb=768, max_output_kb=64, max_artifacts=0)


class InlineTasks:
    """Run inline tasks, a few at once."""

    def __init__(self, runner: Runner, at_once: int = 2, limits: Limits = LIMITS) -> None:
        self._runner = runner
        self._limits = limits
        self._slots = FairSlots(at_once)

    async def run(
        self,
        workspace_id: str,
        entry: str,
        inputs: dict[str, Any],
        files: Mapping[str, Path],
        environment: str | None = None,
    ) -> Outcome:
        """Run an entry on some files for a workspace, and return the outcome."""
        if self._runner.refusal is not None:
            raise Unavailable(self._runner.refusal)
        async with self._slots.slot(workspace_id):
            with tempfile.TemporaryDirectory(prefix="ade-inline-") as name:
                folder = Path(name)
                if not self._runner.isolation:  # the code works in the folder itself
                    await asyncio.to_thread(_copy, files, folder)
                spec = RunSpec(
                    entry=entry,
                    inputs=inputs,
                    limits=self._limits,
                    folder=folder,
                    files=files,
                    environment=environment,
                    preload=ENGINE,
                )
                return await self._outcome(self._runner.start(spec, lambda _: None))

    async def _outcome(self, running: RunHandle) -> Outcome:
        """Wait for the end; kill the code if it takes too long or the request is gone."""
        timeout_seconds = self._limits.timeout_ms / 1000
        outcome, timed_out = await see_to_the_end(running, timeout_seconds, START_SECONDS_MAX)
        if timed_out:
            error = located(timed_out_error(self._limits.timeout_ms), outcome.location)
            return Outcome(Status.FAILED, error=error)
        return outcome


class FairSlots:
    """Share a few slots among workspaces."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._per_workspace = max(1, slots - 1)
        self._running = Counter[str]()
        # Workspaces in the order of their turns, each with those that wait.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def slot(self, workspace_id: str) -> AsyncIterator[None]:
        """Hold a slot while inside, after waiting for it; raise Unavailable if too many wait."""
        if self._has_room_for(workspace_id):
            self._running[workspace_id] += 1
        else:
            await self._wait(workspace_id)
        try:
            yield
        finally:
            self._leave(workspace_id)

    def _has_room_for(self, workspace_id: str) -> bool:
        is_free = self._running.total() < self._slots
        return is_free and self._running[workspace_id] < self._per_workspace

    async def _wait(self, workspace_id: str) -> None:
        waiting = self._waiting.get(workspace_id, ())
        if len(waiting) >= WAITING_PER_WORKSPACE_MAX:
            raise Unavailable(
                "Too many previews and checks of this workspace are waiting; try again shortly."
            )
        if sum(map(len, self._waiting.values())) >= WAITING_MAX:
            raise Unavailable("Too many previews and checks are waiting; try again shortly.")
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(workspace_id, deque()).append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._leave(workspace_id)
            else:
                self._forget(workspace_id, granted)
            raise

    def _forget(self, workspace_id: str, granted: "asyncio.Future[None]") -> None:
        self._waiting[workspace_id].remove(granted)
        if not self._waiting[workspace_id]:
            del self._waiting[workspace_id]

    def _leave(self, workspace_id: str) -> None:
        """Give a slot back, and grant what is free to the workspaces whose turn it is."""
        self._running[workspace_id] -= 1
        self._running += Counter()  # forget those that have none
        while (following := next(filter(self._has_room_for, self._waiting), None)) is not None:
            granted = self._waiting[following][0]
            self._forget(following, granted)
            if following in self._waiting:
                self._waiting.move_to_end(following)
            self._running[following] += 1
            granted.set_result(None)


def _copy(files: Mapping[str, Path], folder: Path) -> None:
    for name, source in files.items():
        place_file(source, folder / name, copied=True)
