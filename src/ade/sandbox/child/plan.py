"""What a zygote is to be: decided by the worker, carried over as one argument."""

import json
from dataclasses import asdict, dataclass, field

FULL, LANDLOCK = "full", "landlock"
JOB_FOLDER = "/job"
INSIDE_USER = 1000


@dataclass(frozen=True)
class Plan:
    """Describe a zygote and the layers of its children; nothing in it is secret."""

    level: str
    interpreter: str
    source: str
    paths: list = field(default_factory=list)
    preload: list = field(default_factory=list)
    readable: list = field(default_factory=list)
    cold: bool = False
    network: bool = False
    user: int = -1  # the number to become, or -1 to stay
    by_root: bool = False  # root may mount before it becomes another
    scratch: str = ""
    landlock: int = 0
    memfd: bool = False
    job_mb: int = 256
    tmp_mb: int = 64
    shared_mb: int = 64
    inodes: int = 10_000
    processes: int = 64
    open_files: int = 256
    without: list = field(default_factory=list)  # layers left out, to see that each is needed

    def as_json(self):
        """Return the plan as an argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text):
        """Read a plan back."""
        return cls(**json.loads(text))

    @property
    def policy_facts(self):
        """Return what the filter of system calls depends on."""
        full = self.level == FULL
        return {
            "forks": full,
            "network": self.network,
            "memfd": self.memfd,
            # Without a mount namespace, and as the worker's own user, a job could reach its files.
            "by_path": full or self.user != -1,
        }
