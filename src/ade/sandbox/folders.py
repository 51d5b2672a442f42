"""Folders that name their owner, so that what a killed process left is known to be nobody's."""

import os
import secrets
from pathlib import Path

PREFIX = "ade-"


def own_name() -> str:
    """Name a folder that is this process's own, and can be told to be nobody's after its death."""
    return f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"


def abandoned(base: Path) -> list[Path]:
    """List the folders of processes that died without removing them."""
    try:
        names = [name for name in os.listdir(base) if name.startswith(PREFIX)]
    except OSError:
        return []
    owners = {name: name.removeprefix(PREFIX).partition("-")[0] for name in names}
    return [
        base / name
        for name, pid in owners.items()
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}")
    ]
