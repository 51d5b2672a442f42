"""What a zygote should be: decided by the worker, passed as one argument."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

FULL, LANDLOCK = "full", "landlock"
JOB_FOLDER = "/job"
INSIDE_USER = 1000


@dataclass(frozen=True)
class ZygotePlan:
    """Describe a zygote and the layers of its children; nothing in it is secret."""

    level: str
    interpreter: str
    source: str
    paths: list[str] = field(default_factory=list)
    preload: list[str] = field(default_factory=list)
    readable: list[str] = field(default_factory=list)
    cold: bool = False
    network: bool = False
    user: int = -1  # the user id to change to, or -1 to stay
    by_root: bool = False  # root mounts first, and changes its user afterwards
    scratch: str = ""
    landlock: int = 0
    memory_group: bool = False
    job_mb: int = 256
    tmp_mb: int = 64
    shared_mb: int = 64
    inodes: int = 10_000
    processes: int = 64
    open_files: int = 256
    without: list[str] = field(default_factory=list)  # layers left out, to test that each is needed

    def as_json(self) -> str:
        """Return the plan as an argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ZygotePlan:
        """Read a plan back."""
        return cls(**json.loads(text))

    @property
    def policy_facts(self) -> dict[str, Any]:
        """Return what the seccomp filter depends on."""
        full = self.level == FULL
        return {
            "forks": full,
            "network": self.network,
            "memory_group": self.memory_group,
            # Without a mount namespace, and as the worker's own user, a job could reach its files.
            "by_path": full or self.user != -1,
        }
