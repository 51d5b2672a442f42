"""What containers may do on this host, and the request to the engine that follows from it.

The model. The person who runs the agent says which folders containers may see, and what one may
use at most. A job that asks for more is refused before anything is created, with the reason. What
the engine would accept and ignore, or make on its own, is checked here.

    what a job asks for                            what happens
    ---------------------------------------------  ----------------------------------------------
    a volume outside of the allowed folders, also  refused
    by a symbolic link
    a volume whose source does not exist           refused: engines make an empty folder instead
    a GPU that this host does not have             refused: Podman ignores what it cannot give
    more memory, CPUs or processes than allowed    refused
    nothing                                        the agent's defaults

The source of a volume is resolved before it is checked, and the engine gets the resolved path.
Whoever can rename folders below an allowed folder at that moment can still lead it elsewhere: give
each container a folder that the others cannot write to, where that matters.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade.agents.containers.order import ContainerError, Order
from ade.domain.units import MIB
from ade.kinds.container import Volume

AGENT_LABEL = "ade.agent"
JOB_LABEL = "ade.job"
ATTEMPT_LABEL = "ade.attempt"
NANO = 1_000_000_000
OPEN_FILES_MAX = 1024
TMP_MB = 64
# The engine's own copy of the output, from which it is completed after a crash of the agent.
LOG_COPY_MB_MAX = 1024


@dataclass(frozen=True, slots=True)
class HostRules:
    """Say what containers may do on this host; `None` leaves it to the engine."""

    agent: str
    folders: tuple[Path, ...] = ()
    memory_bytes: int = 2048 * MIB
    memory_bytes_max: int | None = None
    cpus: float | None = None
    cpus_max: float | None = None
    pids: int = 1024
    pids_max: int = 32_768
    networks: frozenset[str] = frozenset({"none", "bridge"})
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Hold what the engine is asked to create."""

    name: str
    image: str
    command: list[str]
    environment: dict[str, str] = field(repr=False)
    user: str | None
    labels: dict[str, str]
    host: dict[str, Any] = field(repr=False)
    has_memory_limit: bool


def create_request(order: Order, rules: HostRules) -> CreateRequest:
    """Return what to create for an order, or raise ContainerError with why it is refused."""
    inputs, asked = order.inputs, order.inputs.resources
    if inputs.network not in rules.networks:
        raise ContainerError(
            f"This agent gives containers no network of the kind {inputs.network}."
        )
    if asked.gpus > rules.gpus:
        raise ContainerError(f"The job asks for {asked.gpus} GPUs; this host has {rules.gpus}.")
    memory_bytes = asked.memory_bytes or rules.memory_bytes
    _check_most("memory_bytes", asked.memory_bytes, rules.memory_bytes_max)
    _check_most("cpus", asked.cpus, rules.cpus_max)
    _check_most("pids", asked.pids, rules.pids_max)
    cpus = asked.cpus or rules.cpus
    host: dict[str, Any] = {
        "network_mode": inputs.network,
        "read_only": inputs.read_only,
        "tmpfs": {"/tmp": f"rw,nosuid,nodev,mode=1777,size={TMP_MB}m"},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": memory_bytes,
        "memswap_limit": memory_bytes,
        "pids_limit": asked.pids or rules.pids,
        "auto_remove": False,
        "restart_policy": {"Name": "no"},
        "binds": [_bind(volume, rules) for volume in inputs.volumes],
        # Limits that are given replace all defaults of the engine, so both are given.
        "ulimits": [
            {"Name": "nofile", "Soft": OPEN_FILES_MAX, "Hard": OPEN_FILES_MAX},
            {"Name": "nproc", "Soft": rules.pids_max, "Hard": rules.pids_max},
        ],
        "log_config": {"type": "json-file", "config": {"max-size": f"{LOG_COPY_MB_MAX}m"}},
    }
    if cpus is not None:
        host["nano_cpus"] = int(cpus * NANO)
    if asked.gpus:
        host["device_requests"] = [
            {"Driver": "nvidia", "Count": asked.gpus, "Capabilities": [["gpu"]]}
        ]
    return CreateRequest(
        name=order.container_name,
        image=inputs.image,
        command=inputs.arguments(),
        environment=dict(inputs.env),
        user=inputs.user,
        labels=labels_of(rules.agent, order.job_id, order.attempt),
        host=host,
        has_memory_limit=True,
    )


def labels_of(agent: str, job_id: str, attempt: int) -> dict[str, str]:
    """Return the labels by which a container is found again."""
    return {AGENT_LABEL: agent, JOB_LABEL: job_id, ATTEMPT_LABEL: str(attempt)}


def attempt_of(labels: Mapping[str, str]) -> tuple[str, int] | None:
    """Read from the labels of a container which attempt it is."""
    job_id, attempt = labels.get(JOB_LABEL), labels.get(ATTEMPT_LABEL, "")
    return (job_id, int(attempt)) if job_id and attempt.isdigit() else None


def check_config(order: Order, shared: Path | None) -> None:
    """Raise ContainerError if the configuration that a job names is not in the shared folder."""
    path = order.inputs.config_path
    if path is None or shared is None or (shared / path).is_file():
        return
    raise ContainerError(f"The configuration {path!r} is not in the shared folder of this host.")


def gpu_count(devices: Path = Path("/dev")) -> int:
    """Count the GPUs of this host by their device files."""
    return sum(path.name[6:].isdigit() for path in devices.glob("nvidia[0-9]*"))


def _check_most(name: str, asked: float | None, most: float | None) -> None:
    if asked is not None and most is not None and asked > most:
        raise ContainerError(f"{name}: the job asks for {asked:g}; this agent allows {most:g}.")


def _bind(volume: Volume, rules: HostRules) -> str:
    source = Path(os.path.realpath(volume.host))
    allowed = [Path(os.path.realpath(folder)) for folder in rules.folders]
    if not any(source == folder or folder in source.parents for folder in allowed):
        raise ContainerError(
            f"The volume {volume.host!r} is outside of the folders that this agent allows."
        )
    if not source.exists():
        raise ContainerError(f"The volume {volume.host!r} does not exist on this host.")
    if any(mark in str(source) for mark in ":,\n"):
        raise ContainerError(f"The volume {volume.host!r} leads to a path with ':' or ','.")
    return f"{source}:{volume.container}:{volume.mode}"
