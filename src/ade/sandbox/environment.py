"""Which interpreter and modules a job finds behind the walls."""

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import ade

SOURCE = Path(ade.__file__).parent.parent
# What ADE's own runtime is made of; imported once, shared by every child.
RUNTIME = ("ade_engine.running", "ade_engine.cell")
LIBRARIES = ("numpy", "polars", "python_calamine")


@dataclass(frozen=True, slots=True)
class Environment:
    """Name what is installed; two jobs with the same `key` may share a zygote."""

    key: str
    interpreter: Path
    paths: tuple[Path, ...] = ()
    preload: tuple[str, ...] = RUNTIME
    readable: tuple[Path, ...] = ()
    cold: bool = False


def own_environment() -> Environment:
    """Return ADE's own environment: what jobs without requirements run in."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    libraries = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")}
    return Environment(
        key="own",
        interpreter=Path(sys.executable),
        preload=(*RUNTIME, *LIBRARIES),
        readable=tuple(sorted({*prefixes, *libraries, SOURCE})),
    )
