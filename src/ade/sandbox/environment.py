"""Which interpreter and modules a job finds behind the walls."""

import os
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import ade

SOURCE = Path(ade.__file__).parent.parent
# What ADE's own runtime is made of; imported once, shared by every child.
RUNTIME = ("ade_engine.running", "ade_engine.cell")
LIBRARIES = ("numpy", "polars", "python_calamine", "ade_engine.warm")


@dataclass(frozen=True, slots=True)
class Environment:
    """Name what is installed; two jobs with the same `key` may share a zygote."""

    key: str
    interpreter: Path
    paths: tuple[Path, ...] = ()
    preload: tuple[str, ...] = RUNTIME
    readable: tuple[Path, ...] = ()
    cold: bool = False


@cache
def own_environment() -> Environment:
    """Return ADE's own environment: what jobs without requirements run in."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    paths = _installed()
    return Environment(
        key="own",
        interpreter=Path(sys.executable),
        paths=paths,
        preload=(*RUNTIME, "numpy"),
        readable=tuple(sorted({*prefixes, *paths, SOURCE})),
    )


@cache
def engine_environment() -> Environment:
    """Return ADE's own environment with the engine warm: slower to start and to fork."""
    return replace(own_environment(), key="engine", preload=(*RUNTIME, *LIBRARIES))


def _installed() -> tuple[Path, ...]:
    """List where modules are found, without the folder that the program was started in."""
    started_in = {"", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))}
    found = [Path(path) for path in sys.path if os.path.isabs(path) and path not in started_in]
    return tuple(dict.fromkeys(path for path in found if path.exists()))
