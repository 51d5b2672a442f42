"""What is to be run in a child, and how much it may take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade.domain.limits import Limits
from ade.sandbox.environment import Environment

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """Hold the limits that are the same for every job of a worker."""

    file_mb: int = 100
    result_bytes: int = MIB
    artifact_mb: int = 256
    nice: int = 10


@dataclass(frozen=True, slots=True)
class Order:
    """Say what to run: `files` are copied into the job's folder, `collect` is taken out of it."""

    entry: str
    inputs: dict[str, Any]
    limits: Limits
    environment: Environment
    files: Mapping[str, Path] = field(default_factory=dict)
    network: bool = False
    collect_from: str = "artifacts"
    collect_to: Path | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    outputs_to: Path | None = None


def data_bytes(limits: Limits) -> int:
    """Return the ceiling for one process's private memory, beyond what its zygote had.

    It leaves room for what libraries reserve and never touch; the watch bounds what is touched.
    """
    return limits.memory_mb * MIB * 5 // 4 + 256 * MIB
