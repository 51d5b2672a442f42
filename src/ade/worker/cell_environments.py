"""Install the packages that a cell requires: the same shared environments as those of builds.

The requirements are resolved to a lock (remembered for `ADE_RESOLUTION_HOURS`, so that the same
requirements give the same packages), and the digest of the lock names the folder that all cells and
builds with that lock share. uv runs as a child of the worker, outside the sandbox; the packages are
imported only inside.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from ade.domain.errors import Unavailable
from ade.environments.failure import BuildFailed, too_long
from ade.environments.install import install, workshop
from ade.environments.requirements import FILE
from ade.environments.resolve import resolve
from ade.environments.shared import SharedEnvironments
from ade.environments.tool import Tool
from ade.kinds.kind import InstalledPackages
from ade.settings import Settings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CellEnvironments:
    """Make the environments of cells on this worker."""

    settings: Settings
    shared: SharedEnvironments | None = None

    async def installed(self, requirements: Sequence[str]) -> InstalledPackages:
        """Resolve and install; raises BuildFailed in words for the author of the cell."""
        seconds = self.settings.build_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._install(list(requirements))
        except TimeoutError:
            raise BuildFailed(too_long(seconds, "installing the packages of the cell")) from None
        except BuildFailed as failed:
            message = failed.error.message.replace(FILE, "requirements")
            raise BuildFailed(replace(failed.error, message=message)) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(f"The cell's packages could not be installed: {reason}.") from None

    async def _install(self, requirements: list[str]) -> InstalledPackages:
        async with workshop(self.settings) as folder:
            tool = Tool(self.settings, lambda line: log.debug("uv", line=line))
            lock = await resolve(requirements, tool, folder)
            if not lock.text:  # ADE's own environment has them
                return InstalledPackages(None, ())
            if self.shared is not None:
                await self.shared.fetch(lock.digest)
            environment = await install(lock, tool, folder)
            if self.shared is not None:
                await self.shared.made(environment)
            return InstalledPackages(environment, tuple(lock.packages))
