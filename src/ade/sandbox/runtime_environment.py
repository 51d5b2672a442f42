"""The interpreter, import paths and preloaded modules of a job."""

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ade

SOURCE = Path(ade.__file__).parent.parent
# The modules of ADE's runtime, imported once in every zygote.
RUNTIME = ("ade_engine.run_entry", "ade_engine.entry.cell")
# What is preloaded for jobs that name no modules.
COMMON = ("numpy",)


@dataclass(frozen=True, slots=True)
class Environment:
    """Describe an environment; jobs with the same `key` share a zygote."""

    key: str
    interpreter: Path
    paths: tuple[Path, ...] = ()
    preload: tuple[str, ...] = RUNTIME
    readable: tuple[Path, ...] = ()
    cold: bool = False


@cache
def own_environment(preload: tuple[str, ...] = ()) -> Environment:
    """Return ADE's own environment, for jobs without requirements, with these modules preloaded.

    A zygote that has imported more starts and forks more slowly, so each kind names its own
    modules, and each set of modules has its own zygote.
    """
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    paths = _installed()
    return Environment(
        key=" ".join(("own", *preload)),
        interpreter=Path(sys.executable),
        paths=paths,
        preload=(*RUNTIME, *(preload or COMMON)),
        readable=tuple(sorted({*prefixes, *paths, SOURCE})),
    )


def _installed() -> tuple[Path, ...]:
    """List the import paths, without the folder that the program was started in."""
    started_in = {"", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))}
    found = [Path(path) for path in sys.path if os.path.isabs(path) and path not in started_in]
    return tuple(dict.fromkeys(path for path in found if path.exists()))
