"""The loop that claims builds and makes them: install, activate, record, let the runs go on.

The model. Any process that runs jobs also builds. A build is claimed like a job, with a lease and a
fence; its holder renews the lease, and trusts it no longer than `ade.domain.lease` allows. News of
a build, or of its end by a person, comes on one topic; whoever hears it looks at the database, and
looks there from time to time anyway.

    failure                              what happens
    -----------------------------------  -----------------------------------------------------------
    the builder dies                     uv and the hooks die with it; the lease expires; the next
                                         builder begins anew; what was unfinished is never used;
                                         after as many losses as a job has attempts it fails
    the lease is lost, or the build was  uv or the hooks are killed first, then nothing is recorded
    cancelled by a person
    it takes longer than its timeout     killed; the build fails and says at which step
    the builder is drained               killed; the build is put back for another
    it dies between the end of a build   the sweep of any builder finds runs that wait for a build
    and the news to its runs             that has ended, and tells them
"""

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from ade.app.catalogue import Catalogue
from ade.environments.collect import collect
from ade.environments.failure import reason_of
from ade.events.notifier import Subscription
from ade.kernel import Kernel
from ade.settings import Settings
from ade.stages.builds import BuildEnded
from ade.storage import Blobs
from ade.store.builds import BUILDS_TOPIC
from ade.store.rows import Build
from ade.worker.building import Building
from ade.worker.runner import Runner

COLLECT_EVERY_SECONDS = 600.0
SETTLE_AT_ONCE = 100
log = structlog.get_logger()


def ending_of(build: Build) -> BuildEnded:
    """Say to a build's runs how it ended."""
    return BuildEnded(build.workspace_id, build.id, reason_of(build))


class Builder:
    """Claim builds and make them, up to a number at once."""

    def __init__(
        self,
        name: str,
        *,
        kernel: Kernel,
        library: Catalogue,
        blobs: Blobs,
        runner: Runner,
        settings: Settings,
    ) -> None:
        self.name = name
        self._kernel = kernel
        self._library = library
        self._blobs = blobs
        self._runner = runner
        self._settings = settings
        self._clock = kernel.store.clock
        self._building: dict[Building, asyncio.Task[None]] = {}
        self._collecting: asyncio.Task[None] | None = None
        self._collected_at: float | None = None
        self._settled_at: float | None = None

    @property
    def running(self) -> int:
        """Count the builds under way."""
        return len(self._building)

    async def run(self) -> None:
        """Build until cancelled; then put back what is under way."""
        with self._kernel.notifier.subscribe(BUILDS_TOPIC) as bell:
            try:
                while True:
                    await self._turn(bell)
                    if await bell.wait(self._settings.poll_seconds):
                        for building in self._building:
                            building.look()  # whoever rang may have cancelled one
            finally:
                await self._put_back()

    async def _turn(self, bell: Subscription) -> None:
        """Look at everything once; trouble is logged, and the next look comes anyway."""
        for step in (self._claim, self._sweep, self._collect):
            try:
                await step(bell)
            except Exception as error:
                log.warning("builder in trouble", step=step.__name__, reason=type(error).__name__)

    # --- claim ----------------------------------------------------------------------------------

    async def _claim(self, bell: Subscription) -> None:
        lease = self._kernel.settings.lease
        while len(self._building) < self._settings.build_concurrency:
            asked = self._clock.monotonic()
            build = await self._library.claim_build(self.name, lease.lease_us)
            if build is None:
                return
            building = Building(
                build,
                lease.trusted_until(asked),
                kernel=self._kernel,
                library=self._library,
                blobs=self._blobs,
                runner=self._runner,
                settings=self._settings,
            )
            task = asyncio.create_task(self._see_through(building), name=f"build {build.id}")
            self._building[building] = task
            task.add_done_callback(self._ended(building, bell))

    def _ended(
        self, building: Building, bell: Subscription
    ) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            del self._building[building]
            bell.notify()  # there is room for another
            if not task.cancelled() and (error := task.exception()):
                log.error("build broke", build_id=building.build.id, exc_info=error)

        return forget

    async def _see_through(self, building: Building) -> None:
        ended = await building.see_through()
        if ended is not None:
            await self._kernel.settle_build(ending_of(ended))

    # --- sweep ----------------------------------------------------------------------------------

    async def _sweep(self, bell: Subscription) -> None:
        """Tell runs that still wait for a build that has ended."""
        if not self._is_due(self._settled_at, self._settings.sweep_seconds):
            return
        self._settled_at = self._clock.monotonic()
        for build in await self._library.settled_with_waiting_runs(SETTLE_AT_ONCE):
            told = await self._kernel.settle_build(ending_of(build))
            log.warning("repaired", build_id=build.id, runs=told)

    async def _collect(self, bell: Subscription) -> None:
        """Remove what nobody uses, beside everything else: it may take its time."""
        is_busy = self._collecting is not None and not self._collecting.done()
        if is_busy or not self._is_due(self._collected_at, COLLECT_EVERY_SECONDS):
            return
        self._collected_at = self._clock.monotonic()
        self._collecting = asyncio.create_task(self._collect_once(), name="collect environments")

    async def _collect_once(self) -> None:
        try:
            await collect(self._library, self._settings)
        except Exception as error:
            log.warning("cannot collect environments", reason=type(error).__name__)

    def _is_due(self, last: float | None, every_seconds: float) -> bool:
        return last is None or self._clock.monotonic() - last >= every_seconds

    # --- drain ----------------------------------------------------------------------------------

    async def _put_back(self) -> None:
        for building in list(self._building):
            building.put_back()
        tasks = list(self._building.values())
        if self._collecting is not None:
            self._collecting.cancel()
            tasks.append(self._collecting)
        await asyncio.gather(*tasks, return_exceptions=True)


async def end(building: asyncio.Task[None] | None) -> None:
    """Stop a builder's loop and wait until it has put back what it held."""
    if building is not None:
        building.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await building
