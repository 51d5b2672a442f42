"""What every environment has already: the packages that the engine itself runs on.

Code that runs beside the engine shares its interpreter, so there can be one version of these. The
resolver is held to that version, and is shown its metadata in wheels that hold nothing else: it
needs no registry for them, and they are not installed a second time.
"""

import zipfile
from functools import cache
from importlib.machinery import all_suffixes
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
# Extension modules for other interpreters are refused too: they have no business there.
MODULE_SUFFIXES = (*all_suffixes(), ".so", ".pyd", ".pyc", ".pyo")
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
    """Raise if what was installed would stand in the way of the engine.

    Files of the kind `.pth` are not read there: only the folder itself is on the import path.
    """
    reserved = reserved_names()
    for entry in packages.iterdir():
        name = importable_name(entry.name, is_folder=entry.is_dir())
        if name is not None and name.casefold() in reserved:
            raise not_installed(
                f"A package of requirements.txt brings a module {name!r}, which is the engine's."
            )


@cache
def reserved_names() -> frozenset[str]:
    """List the top-level modules of what the engine runs on, in lower case."""
    found = {*RESERVED}
    for package in provided():
        installed = _installed(package.name)
        for file in (installed.files or ()) if installed and package.name != OWN else ():
            name = importable_name(file.parts[0], is_folder=len(file.parts) > 1)
            found |= {name.casefold()} if name is not None else set()
    return frozenset(found - {"__pycache__", "bin"})


def importable_name(entry: str, *, is_folder: bool) -> str | None:
    """Return the module that an entry of an import path can be imported as, by any Python here."""
    name, _, suffix = entry.partition(".")
    is_module = not suffix if is_folder else f".{suffix}".endswith(MODULE_SUFFIXES)
    return name if is_module and name.isidentifier() else None
