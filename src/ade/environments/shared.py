"""Environments that hosts share: installed by one, fetched by the others.

The model. Whoever makes an environment packs it (`ade.environments.archive`), keeps the archive
among the blobs, and records it; a host that needs the environment and does not have it fetches the
blob, whose digest is checked, and unpacks it. Within a process that happens once at a time for each
environment; of two processes on one disk, one finds in the end that it was too late.

    what is found                            what happens
    ---------------------------------------  -----------------------------------------------------
    it is on this disk                       it is used
    it has an archive                        the archive is fetched and unpacked
    it was made for another interpreter      its lock is installed here, under another digest
    the archive is damaged or refused        the same
    the bytes of the archive are gone        the same, and the archive is forgotten
    it has no archive                        EnvironmentGone; the next run builds it again
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import structlog

from ade.domain.errors import NotFound
from ade.domain.units import MIB
from ade.environments.archive import (
    ArchiveRefused,
    Recipe,
    pack,
    read_recipe,
    recipe_of,
    unpack,
)
from ade.environments.environment import EnvironmentGone, interpreter, is_there
from ade.environments.failure import not_installed
from ade.environments.install import install, one_at_a_time, to_the_end, workshop
from ade.environments.resolve import Lock
from ade.environments.tool import Tool
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.rows import EnvironmentArchive

ARCHIVE = "environment.tar.gz"
GONE = "The installed packages of this configuration are gone; activate it again."
log = structlog.get_logger()
Fetch = Callable[[], Awaitable[Path]]


class ArchiveRecords(Protocol):
    """Know which blobs are archives of environments."""

    async def find(self, environment: str) -> EnvironmentArchive | None:
        """Find the archive of an environment."""
        ...

    async def add(self, archive: EnvironmentArchive) -> EnvironmentArchive:
        """Record an archive, unless the environment has one; return the one that counts."""
        ...

    async def forget(self, environment: str) -> None:
        """Forget an archive whose bytes are gone."""
        ...


async def obtain(recipe: Recipe, fetch: Fetch, settings: Settings) -> str:
    """See to it that an environment is on this disk; return its digest here.

    That is another one if it was made for another interpreter.
    """
    if recipe.interpreter == interpreter():
        async with one_at_a_time(recipe.environment):
            if is_there(recipe.environment, settings):
                return recipe.environment
            try:
                await _unpack(recipe, await fetch(), settings)
            except ArchiveRefused as refused:
                log.error("archive refused", environment=recipe.environment, reason=str(refused))
            else:
                log.info("environment fetched", environment=recipe.environment)
                return recipe.environment
    return await _install_again(recipe, settings)


async def _unpack(recipe: Recipe, archive: Path, settings: Settings) -> None:
    async with workshop(settings) as folder:
        await to_the_end(unpack, archive, recipe, folder, settings)


async def _install_again(recipe: Recipe, settings: Settings) -> str:
    """Install the same versions for the interpreter of this host."""
    if settings.wheelhouse is None and not settings.build_network:
        raise not_installed(
            f"The packages that were installed for {recipe.interpreter} cannot be used on this host"
            f" ({interpreter()}), and it cannot install them: ADE_BUILD_NETWORK is off and no"
            " ADE_WHEELHOUSE is set."
        )
    async with workshop(settings) as folder:
        tool = Tool(settings, lambda line: log.debug("uv", line=line))
        return await install(Lock(recipe.lock, settings.source_builds), tool, folder)


class SharedEnvironments:
    """Share the environments of this host with others by way of the blobs."""

    def __init__(self, records: ArchiveRecords, blobs: Blobs, settings: Settings) -> None:
        self.records = records
        self._blobs = blobs
        self._settings = settings

    async def obtain(self, environment: str) -> str:
        """See to it that an environment is on this disk; return its digest here."""
        if is_there(environment, self._settings):
            return environment
        archive = await self.records.find(environment)
        if archive is None:
            raise EnvironmentGone(GONE)
        return await obtain(recipe_of(archive), lambda: self._fetched(archive), self._settings)

    async def fetch(self, environment: str) -> None:
        """Fetch an environment if it has an archive; otherwise the caller installs it."""
        if is_there(environment, self._settings):
            return
        archive = await self.records.find(environment)
        if archive is not None and archive.interpreter == interpreter():
            await obtain(recipe_of(archive), lambda: self._fetched(archive), self._settings)

    async def _fetched(self, archive: EnvironmentArchive) -> Path:
        try:
            return await asyncio.to_thread(self._blobs.existing, archive.archive)
        except NotFound:
            await self.records.forget(archive.environment)
            raise ArchiveRefused("its bytes are gone") from None

    async def made(self, environment: str) -> None:
        """Share an environment that was just made, if hosts share their blobs.

        Without object storage all processes use one disk, and agents ask for what they need.
        """
        if self._blobs.remote is not None:
            await self.share(environment)

    async def share(self, environment: str) -> EnvironmentArchive:
        """See to it that an environment of this disk has an archive; return what is recorded."""
        async with one_at_a_time(f"share {environment}"):
            known = await self.records.find(environment)
            if known is not None:
                return known
            async with workshop(self._settings) as folder:
                made = await to_the_end(self._keep, environment, folder / ARCHIVE)
            return await self.records.add(made)

    def _keep(self, environment: str, file: Path) -> EnvironmentArchive:
        archive = describe(environment, file, self._settings)
        with file.open("rb") as source:
            blob = self._blobs.write(iter(lambda: source.read(MIB), b""), file.stat().st_size)
        log.info("environment archived", environment=environment, size_mb=blob.size_bytes // MIB)
        return archive._replace(archive=blob.digest, archive_bytes=blob.size_bytes)


def describe(environment: str, file: Path, settings: Settings) -> EnvironmentArchive:
    """Pack an environment of this disk into a file, and describe it; the blob is not known yet."""
    try:
        recipe, size_bytes = read_recipe(environment, settings)
        pack(environment, file, settings)
    except ArchiveRefused as refused:
        raise not_installed(f"The packages cannot be shared with other hosts: {refused}.") from None
    except (OSError, ValueError, KeyError):
        raise EnvironmentGone(GONE) from None
    return EnvironmentArchive(
        environment=environment,
        archive="",
        archive_bytes=file.stat().st_size,
        installed_bytes=size_bytes,
        interpreter=recipe.interpreter,
        installer=recipe.installer,
        source_builds=int(recipe.source_builds),
        lock=recipe.lock,
        created_at=0,
        used_at=0,
    )
