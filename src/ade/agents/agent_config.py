"""The configuration of an agent: the server, its name and key, and what jobs may do here."""

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

SOCKETS = (Path("/var/run/docker.sock"), Path("/run/podman/podman.sock"))


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Hold the settings of an agent; see `ade agent --help`."""

    server: str
    name: str
    key_file: Path
    state_dir: Path
    code: str | None = field(default=None, repr=False)
    labels: tuple[str, ...] = ()
    slots: int = 1
    engine: str = "unix:///var/run/docker.sock"
    folders: tuple[Path, ...] = ()
    shared_folder: Path | None = None
    network: bool = True
    memory_mb: int = 2048
    memory_mb_max: int | None = None
    cpus: float | None = None
    cpus_max: float | None = None
    pids: int = 1024
    spool_mb: int = 1024
    drain_seconds: float = 30.0
    heartbeat_seconds: float = 10.0
    watch_seconds: float = 3.0
    containers: bool = True
    # The sandboxed kinds that this agent takes, if it takes any.
    kinds: tuple[str, ...] = ()


def default_name() -> str:
    """Return the name of this host."""
    return socket.gethostname().partition(".")[0]


def default_engine() -> str:
    """Return the address of the engine of this host, as its own tools find it."""
    if given := os.environ.get("DOCKER_HOST"):
        return given
    found = next((path for path in SOCKETS if path.exists()), SOCKETS[0])
    return f"unix://{found}"
