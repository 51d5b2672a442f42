"""Remove what is not used: idle environments, leftovers of killed processes, a cache too large.

An environment is in use while a ready build names it and a run has used it within the time that it
is kept. One that is idle is first taken from its builds, in one transaction that refuses if a job
still needs it; only then is its folder moved out of sight and deleted.

One that has an archive (`ade.environments.shared`) is a copy that can be fetched again: its folder
goes and its builds stay. They are cancelled when no host has used it for that time.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from ade.clock import FileClock
from ade.domain.units import DAY_SECONDS, MIB
from ade.environments.environment import LOST, STAMP
from ade.environments.failure import environment_gone, error_json
from ade.environments.install import UNFINISHED, size_of, workshop
from ade.environments.resolve import RESOLVED
from ade.environments.tool import Tool
from ade.settings import Settings

log = structlog.get_logger()
COLLECT_EVERY_SECONDS = 600.0
# Longer than it takes from an environment's last stamp to the record of the build that made it.
YOUNG_SECONDS = 3600
IDLE = (
    "Its packages were removed after they had not been used for {days:g} days;"
    " the next run builds them again."
)


@dataclass(frozen=True, slots=True)
class Collected:
    """Count what was removed."""

    environments: int = 0
    leftovers: int = 0


class Records(Protocol):
    """Know which environments builds refer to, and which have an archive."""

    async def in_use(self) -> set[str]:
        """List the environments that ready builds refer to."""
        ...

    async def retire(self, environment: str, reason: str, *, even_if_needed: bool = False) -> bool:
        """Cancel the ready builds of an environment, unless an unfinished job needs one of them."""
        ...

    async def is_needed(self, environment: str) -> bool:
        """Tell whether an unfinished job needs an environment."""
        ...

    async def archived(self) -> set[str]:
        """List the environments that have an archive."""
        ...

    async def use(self, environments: Collection[str]) -> None:
        """Record that environments are used."""
        ...

    async def retire_unused(self, seconds: float, reason: str) -> int:
        """Forget the archives that no host has used for so long, with their builds."""
        ...


async def collect_for_ever(records: Records, settings: Settings) -> None:
    """Collect now and then, until cancelled; not while a step of the clock misdates young files."""
    clock = FileClock()
    while True:
        try:
            if clock.steady_seconds() > YOUNG_SECONDS:
                await collect(records, settings)
        except Exception as error:
            log.warning("cannot collect environments", reason=type(error).__name__)
        await asyncio.sleep(COLLECT_EVERY_SECONDS)


async def collect(records: Records, settings: Settings) -> Collected:
    """Remove what is not used, and nothing that may still be needed."""
    root = settings.activation_envs_dir.resolve()
    present = await asyncio.to_thread(_environments, root)
    in_use, archived = await records.in_use(), await records.archived()
    for digest in in_use - set(present) - archived:
        await records.retire(digest, error_json(environment_gone(LOST)), even_if_needed=True)
    lately = {digest for digest, idle in present.items() if idle < 2 * COLLECT_EVERY_SECONDS}
    await records.use(lately & archived)
    reason = error_json(environment_gone(IDLE.format(days=settings.environment_keep_days)))
    removed = 0
    for digest, idle_seconds in present.items():
        if not _is_idle(idle_seconds, settings, named=digest in in_use):
            continue
        if digest in archived and await records.is_needed(digest):
            continue
        if digest in in_use - archived and not await records.retire(digest, reason):
            continue
        removed += await asyncio.to_thread(_remove, root, digest, settings)
    await records.retire_unused(settings.environment_keep_days * DAY_SECONDS, reason)
    leftovers = await asyncio.to_thread(_remove_leftovers, root, settings)
    await _bound_cache(settings)
    if removed or leftovers:
        log.info("collected", environments=removed, leftovers=leftovers)
    return Collected(removed, leftovers)


def _is_idle(idle_seconds: float, settings: Settings, *, named: bool) -> bool:
    keep_seconds = settings.environment_keep_days * DAY_SECONDS
    return idle_seconds > (keep_seconds if named else min(keep_seconds, YOUNG_SECONDS))


def _environments(root: Path) -> dict[str, float]:
    """Find every complete environment and for how long it was not used."""
    found = {}
    now = time.time()  # noqa: TID251 - compared with the dates of files
    for stamp in root.glob(f"{'[0-9a-f]' * 64}/{STAMP}"):
        with contextlib.suppress(OSError):
            found[f"sha256:{stamp.parent.name}"] = now - stamp.stat().st_mtime
    return found


def _remove(root: Path, digest: str, settings: Settings) -> int:
    """Move an environment out of sight and delete it, unless it was used this very moment."""
    name = digest.partition(":")[2]
    gone = root / UNFINISHED / secrets.token_hex(8)
    gone.parent.mkdir(parents=True, exist_ok=True)
    try:
        now = time.time()  # noqa: TID251 - compared with the dates of files
        idle_seconds = now - (root / name / STAMP).stat().st_mtime
        if not _is_idle(idle_seconds, settings, named=False):
            return 0
        (root / name).rename(gone)
    except OSError:
        return 0
    shutil.rmtree(gone, ignore_errors=True)
    return 1


def _remove_leftovers(root: Path, settings: Settings) -> int:
    """Delete what builds left that were killed: no build lasts longer than its timeout."""
    now = time.time()  # noqa: TID251 - compared with the dates of files
    oldest = now - settings.build_timeout_seconds - YOUNG_SECONDS
    removed = 0
    for entry in _entries(root / UNFINISHED):
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)
                removed += 1
    forgotten = now - settings.resolution_hours * 3600
    for entry in _entries(root / RESOLVED):
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_mtime < forgotten:
                os.unlink(entry.path)
    return removed


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


async def _bound_cache(settings: Settings) -> None:
    """Empty uv's cache when it has grown too large; uv itself waits for processes that use it."""
    tool = Tool(settings, lambda line: None)
    if not tool.cache_folder.is_dir():
        return
    size_bytes = await asyncio.to_thread(size_of, tool.cache_folder)
    if size_bytes > settings.environment_cache_mb * MIB:
        async with workshop(settings) as folder:
            await tool.run(["cache", "clean", "--no-config"], folder)
        log.info("cache emptied", size_mb=size_bytes // MIB)
