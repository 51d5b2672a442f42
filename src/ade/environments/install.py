"""Install a lock into a folder that is there whole or not at all."""

import asyncio
import contextlib
import ctypes
import json
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ade.domain.units import MIB
from ade.environments.environment import PACKAGES, STAMP, folder_of, interpreter, is_there
from ade.environments.failure import not_installed
from ade.environments.provided import refuse_shadows
from ade.environments.resolve import Lock
from ade.environments.tool import Tool, uv_version
from ade.settings import Settings

UNFINISHED = "unfinished"
LOCK = "lock.txt"
Result = TypeVar("Result")
_installing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


@asynccontextmanager
async def workshop(settings: Settings) -> AsyncIterator[Path]:
    """Make a folder to work in, on the disk of the environments, and remove it in the end.

    One that a killed process leaves holds nothing that anyone looks at, and is collected by age.
    """
    folder = settings.activation_envs_dir.resolve() / UNFINISHED / secrets.token_hex(8)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def to_the_end(call: Callable[..., Result], *given: Any) -> Result:
    """Call something in a thread, and wait for its end also if the waiting task is cancelled.

    The thread cannot be stopped, and the folder that it works in is removed afterwards: a folder
    that is being removed must not get the name of an environment.
    """
    working = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def one_at_a_time(environment: str) -> asyncio.Lock:
    """Return the lock that whoever makes an environment in this process must hold."""
    return _installing.setdefault(environment, asyncio.Lock())  # it lives while someone holds it


async def install(lock: Lock, tool: Tool, folder: Path) -> str:
    """Make the environment of a lock, unless it is there; return its digest.

    Two builds of one process do not install the same twice; of two processes, one finds in the end
    that it was too late.
    """
    async with one_at_a_time(lock.digest):
        if is_there(lock.digest, tool.settings):
            tool.log("These packages are installed already.")
        else:
            await _install(lock, tool, folder)
    return lock.digest


async def _install(lock: Lock, tool: Tool, folder: Path) -> None:
    made = folder / "environment"
    made.mkdir()
    (made / LOCK).write_text(lock.text, encoding="utf-8")
    await tool.run(
        [
            *("pip", "install", *tool.sources(), "--target", str(made / PACKAGES)),
            *("--no-deps", "--require-hashes", "--compile-bytecode", "--link-mode", "copy"),
            *("--requirements", str(made / LOCK)),
        ],
        folder,
    )
    await to_the_end(_complete, made, lock, tool.settings)


def _complete(made: Path, lock: Lock, settings: Settings) -> None:
    """Look over what was installed, stamp it, and give it its name."""
    packages = made / PACKAGES
    packages.mkdir(exist_ok=True)
    refuse_shadows(packages)
    size_bytes = size_of(packages)
    if size_bytes > settings.environment_max_mb * MIB:
        raise not_installed(
            f"The packages take {size_bytes // MIB} MiB, and ADE_ENVIRONMENT_MAX_MB allows"
            f" {settings.environment_max_mb}."
        )
    facts = {
        "interpreter": interpreter(),
        "uv": uv_version(),
        "source_builds": lock.source_builds,
        "packages": lock.packages,
        "size_bytes": size_bytes,
    }
    settle(made, lock.digest, facts, settings)


def settle(made: Path, environment: str, facts: dict[str, Any], settings: Settings) -> None:
    """Stamp a folder that is complete, bring it to disk, and give it its name."""
    stamp = {
        "digest": environment,
        "made": secrets.token_hex(8),
        "made_at": time.time(),  # noqa: TID251 - a record for people
        **facts,
    }
    (made / STAMP).write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    for entry in (made, made / PACKAGES):
        entry.chmod(0o755)  # jobs are other users, and may look
    _sync(made)
    place = folder_of(environment, settings)
    try:
        made.rename(place)
    except OSError:
        # Another process was faster, which is as good; a folder without a stamp is not in use.
        if not (place / STAMP).is_file():
            shutil.rmtree(place, ignore_errors=True)
            made.rename(place)
    _sync(place.parent)


def size_of(folder: Path) -> int:
    """Count the bytes on disk below a folder."""
    total = 0
    for below, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(below, name)).st_blocks * 512
    return total


def _sync(folder: Path) -> None:
    """Bring everything on a folder's disk to it: the name must not outlive what it names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ctypes.CDLL(None).syncfs(descriptor)
    finally:
        os.close(descriptor)
