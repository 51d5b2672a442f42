"""Repair and forget, in every server, outside of the queue that is repaired."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from ade.kernel import Kernel
from ade.telemetry import metrics
from ade.worker.job_folders import JobFolders

RETAIN_EVERY_SECONDS = 600.0
log = structlog.get_logger()


class Sweeper:
    """Expire leases, fire timers and delete what is old, for as long as the server lives."""

    def __init__(
        self,
        kernel: Kernel,
        jobs_dir: Path,
        every_seconds: float,
        delete_expired: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._kernel = kernel
        self._jobs_dir = jobs_dir
        self._folders = JobFolders(kernel, jobs_dir)
        self._every_seconds = every_seconds
        # Deletes a bounded number of what else has expired, and returns how many.
        self._delete_expired = delete_expired
        self._clock = kernel.store.clock
        self._swept_at: float | None = None
        self._retained_at: float | None = None

    @property
    def age_seconds(self) -> float | None:
        """Return how long ago the last sweep was, None before the first."""
        return None if self._swept_at is None else self._clock.monotonic() - self._swept_at

    async def run(self) -> None:
        """Sweep until cancelled; trouble is logged and tried again."""
        while True:
            try:
                await self.sweep()
            except Exception as error:
                log.warning("cannot sweep", reason=type(error).__name__)
            await asyncio.sleep(self._every_seconds)

    async def sweep(self) -> None:
        """Sweep until nothing is left to repair, and now and then forget what is old."""
        last = self._retained_at
        thorough = last is None or self._clock.monotonic() - last >= RETAIN_EVERY_SECONDS
        while True:
            swept = await self._kernel.expire(deep=thorough)
            metrics.swept(swept)
            if swept.lost or swept.timed_out or swept.lanes:
                log.warning(
                    "repaired", lost=swept.lost, timed_out=swept.timed_out, lanes=swept.lanes
                )
            if not swept.more:
                break
        self._swept_at = self._clock.monotonic()
        if thorough:
            self._retained_at = self._swept_at
            await self.retain()

    async def retain(self) -> None:
        """Delete expired sessions, old jobs, and the folders of jobs that were deleted."""
        while self._delete_expired is not None and await self._delete_expired():
            pass
        for workspace_id in await self._kernel.read(lambda reading: reading.workspace_ids()):
            while gone := await self._kernel.retain(workspace_id):
                for ref in gone:
                    folder = self._jobs_dir / ref.id
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await self._folders.remove_deleted()
