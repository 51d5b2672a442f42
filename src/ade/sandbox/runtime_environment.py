"""Which interpreter and modules a job finds in the sandbox."""

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ade

SOURCE = Path(ade.__file__).parent.parent
# What ADE's own runtime is made of; imported once, shared by every child.
RUNTIME = ("ade_engine.run_entry", "ade_engine.entry.cell")
# What jobs find imported that ask for nothing in particular.
COMMON = ("numpy",)


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
def own_environment(warm: tuple[str, ...] = ()) -> Environment:
    """Return ADE's own environment, where jobs without requirements run, with modules imported.

    The more is imported, the slower it is to start and to fork: each kind names its own.
    """
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    paths = _installed()
    return Environment(
        key=" ".join(("own", *warm)),
        interpreter=Path(sys.executable),
        paths=paths,
        preload=(*RUNTIME, *(warm or COMMON)),
        readable=tuple(sorted({*prefixes, *paths, SOURCE})),
    )


def _installed() -> tuple[Path, ...]:
    """List where modules are found, without the folder that the program was started in."""
    started_in = {"", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))}
    found = [Path(path) for path in sys.path if os.path.isabs(path) and path not in started_in]
    return tuple(dict.fromkeys(path for path in found if path.exists()))
