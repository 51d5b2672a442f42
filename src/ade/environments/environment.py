"""Which environment a version runs in: its build's name, and the folder that the build left."""

import contextlib
import json
import os
import platform
import sys
import sysconfig
from functools import cache
from pathlib import Path

from ade.app.catalogue import Catalogue
from ade.domain.errors import Unavailable
from ade.domain.keys import fingerprint
from ade.environments.failure import environment_gone, error_json
from ade.kernel import Kernel
from ade.kinds.normalize import ENGINE
from ade.sandbox.runtime_environment import RUNTIME, Environment, own_environment
from ade.settings import Settings
from ade.store.builds import AGAIN, BUILDS_TOPIC
from ade.store.rows import Build, Version
from ade_engine.version import ENGINE_VERSION

STAMP = "complete.json"
PACKAGES = "packages"
LOST = "Its packages were not on the disk any more; the next run builds them again."
INSTALLED_BY_OTHERS = ("site-packages", "dist-packages")


class EnvironmentGone(Unavailable):
    """The environment of this build is not on this machine's disk."""


@cache
def interpreter() -> str:
    """Name the Python that environments are made for."""
    return f"{platform.python_implementation()} {platform.python_version()} {_platform()}"


def _platform() -> str:
    """Name the machine, and the C library where there is a choice."""
    return " ".join([sysconfig.get_platform(), *platform.libc_ver()]).strip()


def fingerprint_of(version: Version) -> str:
    """Name the build of a version: the same content, engine and interpreter share one."""
    return fingerprint(
        content_digest=version.digest, engine_version=ENGINE_VERSION, interpreter=interpreter()
    )


async def ensure_build(
    library: Catalogue,
    kernel: Kernel,
    version: Version,
    settings: Settings | None = None,
    *,
    known: Build | None = None,
) -> Build:
    """Find or make the build of a version, and wake the builders; a failed build is tried again.

    Other processes hear of it from the database, or when they look for builds from time to time.
    With `settings`, one whose packages are not on this disk any more is made again. `known` is the
    version's build as it was just read, which saves reading it.
    """
    build = known
    if build is None or build.status in AGAIN:
        build = await library.ensure_build(version, fingerprint_of(version))
    if settings is not None and build.status == "ready" and build.environment is not None:
        if is_there(build.environment, settings):
            return build
        gone = error_json(environment_gone(LOST))
        await library.retire_environment(build.environment, gone, even_if_needed=True)
        build = await library.ensure_build(version, fingerprint_of(version))
    if build.status == "queued":
        kernel.notifier.publish([BUILDS_TOPIC])
    return build


def folder_of(digest: str, settings: Settings) -> Path:
    """Return where an environment is, or would be."""
    return settings.activation_envs_dir.resolve() / digest.partition(":")[2]


def environment_of(digest: str | None, settings: Settings) -> Environment:
    """Return what a build runs in, None being ADE's own; remember that it was used.

    Raises EnvironmentGone if its folder is not there, or not complete.
    """
    own = own_environment()
    if digest is None:
        return own
    folder = folder_of(digest, settings)
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise EnvironmentGone(
            "The installed packages of this configuration are gone; activate it again."
        ) from None
    note_use(folder)
    packages = folder / PACKAGES
    return Environment(
        # A folder that was collected and made again is another: its zygote sees the old one.
        key=f"{digest}/{stamp['made']}",
        interpreter=Path(sys.executable),
        paths=_with_packages(own.paths, packages),
        preload=(*RUNTIME, *ENGINE),
        readable=(*own.readable, packages),
    )


def is_there(digest: str, settings: Settings) -> bool:
    """Tell whether an environment is complete, and count that as a use."""
    folder = folder_of(digest, settings)
    if not (folder / STAMP).is_file():
        return False
    note_use(folder)
    return (folder / STAMP).is_file()


def note_use(folder: Path) -> None:
    """Remember that an environment was used now; it is not collected for a while."""
    with contextlib.suppress(OSError):  # a disk that cannot be written still can be read
        os.utime(folder / STAMP)


def _with_packages(own: tuple[Path, ...], packages: Path) -> tuple[Path, ...]:
    """Put packages behind the standard library and before what ADE itself has installed."""
    first = next(
        (place for place, path in enumerate(own) if path.name in INSTALLED_BY_OTHERS), len(own)
    )
    return (*own[:first], packages, *own[first:])
