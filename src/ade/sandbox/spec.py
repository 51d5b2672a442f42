"""What to run in a child, and how many resources it may use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade.domain.limits import Limits
from ade.domain.units import MIB


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """Hold the limits that are the same for every job of a worker."""

    file_mb: int = 100
    result_bytes: int = MIB
    artifact_mb: int = 256
    nice: int = 5


# Is called with the name of a stream and what was read from it.
OnOutput = Callable[[str, bytes], None]


def ignore_output(stream: str, data: bytes) -> None:
    """Leave what the code writes to its outcome."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Describe one attempt to run code.

    `entry` is the module whose `main` runs, with `inputs`. `files` are copied into the job's
    folder before it starts. When it has ended, the files that `outputs` names (path in the job's
    folder: name) are copied into `folder`, and everything below its `artifacts/` into
    `folder/artifacts`; without `folder` nothing is collected. `environment` is the digest of a
    build's installed packages, None for ADE's own; `preload` names modules that the code should
    find imported in ADE's own environment. `on_output` hears what the code writes, while it runs.
    """

    entry: str
    inputs: dict[str, Any]
    limits: Limits
    folder: Path | None = None
    network: bool = False
    files: Mapping[str, Path] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    environment: str | None = None
    preload: tuple[str, ...] = ()
    on_output: OnOutput = ignore_output


def over_bytes_max(limit_bytes: int) -> int:
    """Return how far a job may be over a limit while it reports where it was; then it is killed."""
    return limit_bytes * 5 // 4 + 32 * MIB


def data_bytes(limits: Limits) -> int:
    """Return the ceiling for one process's private memory, beyond what its zygote had.

    It leaves room for memory that libraries reserve and never touch. The memory that is touched is
    bounded by the supervisor, which measures it.
    """
    return limits.memory_mb * MIB * 5 // 4 + 256 * MIB
