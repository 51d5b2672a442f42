"""What every environment has already: the packages that the engine itself runs on.

Code that runs beside the engine shares its interpreter, so there can be one version of these. The
resolver is held to that version, and is shown its metadata in wheels that hold nothing else: it
needs no registry for them, and they are not installed a second time.
"""

import zipfile
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ade.environments.failure import not_installed

ROOTS = ("numpy", "polars", "python-calamine", "isal")
OWN = "ade"
# Top-level names that would stand before the engine's own if a package brought them.
RESERVED = ("ade", "ade_engine", "isal", "numpy", "polars", "python_calamine")
WHEEL = "Wheel-Version: 1.0\nGenerator: ade\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
BARE = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


class Provided(NamedTuple):
    """Name a package that is there, as its metadata does."""

    name: str
    version: str
    metadata: str


@cache
def provided() -> tuple[Provided, ...]:
    """List the packages that the engine runs on, and theirs."""
    found: dict[str, Provided] = {}
    waiting = list(ROOTS)
    while waiting:
        name = canonicalize_name(waiting.pop())
        installed = _installed(name)
        if name in found or installed is None:
            continue
        metadata = installed.read_text("METADATA") or ""
        found[name] = Provided(name, installed.version, metadata)
        needed = [Requirement(text) for text in installed.requires or ()]
        waiting += [r.name for r in needed if r.marker is None or r.marker.evaluate({"extra": ""})]
    itself = _installed(OWN)
    if itself is not None:
        # Its own requirements are the server's: no business of a configuration.
        bare = BARE.format(name=OWN, version=itself.version)
        found[OWN] = Provided(OWN, itself.version, bare)
    return tuple(found[name] for name in sorted(found))


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def offer(folder: Path) -> list[str]:
    """Write wheels of metadata into a folder, for the resolver; return the pins that go with it."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in provided():
        stem = f"{package.name.replace('-', '_')}-{package.version}"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{stem}.dist-info/METADATA", package.metadata)
            wheel.writestr(f"{stem}.dist-info/WHEEL", WHEEL)
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return [f"{package.name}=={package.version}" for package in provided()]


def refuse_shadows(packages: Path) -> None:
    """Raise if what was installed would stand in the way of the engine."""
    for name in RESERVED:
        if (packages / name).exists() or (packages / f"{name}.py").exists():
            raise not_installed(
                f"A package of requirements.txt brings a module {name!r}, which is the engine's."
            )
