"""Check the health of the server, component by component."""

import asyncio
import inspect
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ade.domain.units import MIB
from ade.http.schemas.server import HealthStatus
from ade.kernel import Kernel
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.rows import JobRef

PROBE_SECONDS_MAX = 5.0
FREE_BYTES_MIN = 100 * MIB
NIL_ID = "00000000-0000-0000-0000-000000000000"
MISSING_JOB = JobRef(NIL_ID, NIL_ID)
_WORSE: tuple[HealthStatus, ...] = ("ok", "degraded", "down")


@dataclass(frozen=True, slots=True)
class Component:
    """Hold the health of one component."""

    status: HealthStatus
    detail: str = ""


# Returns the health of a component, at once or as an awaitable; an exception means that it is down.
Probe = Callable[[], Component | Awaitable[Component]]


class Health:
    """Check every component."""

    def __init__(
        self, kernel: Kernel, settings: Settings, blobs: Blobs, probes: Mapping[str, Probe]
    ) -> None:
        self._kernel = kernel
        self._settings = settings
        self._blobs = blobs
        self._reaching: asyncio.Future[bool] | None = None
        self._probes: dict[str, Probe] = {
            "database": self._database,
            "storage": self._storage,
            "safe-mode": self._safe_mode,
            **probes,
        }

    async def components(self) -> dict[str, Component]:
        """Check all components concurrently; one that does not answer in time is down."""
        found = await asyncio.gather(*[_ask(probe) for probe in self._probes.values()])
        return dict(zip(self._probes, found, strict=True))

    async def database(self) -> Component:
        """Check the database only."""
        return await _ask(self._probes["database"])

    async def _database(self) -> Component:
        await self._kernel.read(lambda reading: reading.read_job(MISSING_JOB))
        return Component("ok")

    async def _storage(self) -> Component:
        folder = self._settings.storage_data_dir
        free = (await asyncio.to_thread(shutil.disk_usage, folder)).free
        detail = f"{free // 1024**2} MiB are free."
        if self._blobs.remote is None:
            return Component("ok" if free >= FREE_BYTES_MIN else "degraded", detail)
        is_there = await self._reach()
        detail += " The object storage answers." if is_there else " The object storage is away."
        return Component("ok" if is_there and free >= FREE_BYTES_MIN else "degraded", detail)

    async def _reach(self) -> bool:
        """Check the object storage; concurrent callers share one check."""
        if self._reaching is None or self._reaching.done():
            self._reaching = asyncio.ensure_future(asyncio.to_thread(self._blobs.is_reached))
        try:
            async with asyncio.timeout(PROBE_SECONDS_MAX * 0.8):
                return await asyncio.shield(self._reaching)
        except TimeoutError:
            return False

    def _safe_mode(self) -> Component:
        if self._kernel.settings.safe_mode:
            return Component("degraded", "ADE_SAFE_MODE is enabled: no job is started.")
        return Component("ok", "off")


def overall(components: Mapping[str, Component]) -> HealthStatus:
    """Return the status of the worst component."""
    return max((one.status for one in components.values()), key=_WORSE.index, default="ok")


async def _ask(probe: Probe) -> Component:
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            found = probe()
            return await found if inspect.isawaitable(found) else found
    except TimeoutError:
        return Component("down", f"It did not answer within {PROBE_SECONDS_MAX:g} s.")
    except Exception as error:
        return Component("down", f"The check failed: {type(error).__name__}.")
