"""Control groups of version 2, below a group that was delegated to this process.

A group is delegated if systemd says so (`Delegate=yes` sets an attribute on it), or if it is the
root of this process's cgroup namespace, as in a container that may write to it. Other groups belong
to whoever made them, even if this process could write to them.

The kernel limits memory only below groups that hold no process themselves. So everything in the
delegated group, this process included, is moved to its child `ade-server` first:

    delegated group        (systemd unit, container)
      ade-server           the server, its zygotes, and what else was in the delegated group
      ade-PID-RANDOM       one pool: the CPU weight of its jobs
        job-0, job-1, ...  one job at a time: memory, swap, number of processes

| what fails | what happens |
| --- | --- |
| the group is not delegated, or has no memory controller | there are no groups; memory is counted |
| processes cannot be moved | likewise |
| the controllers for CPU time or processes are missing | the groups limit memory alone |
| the process is killed | its groups stay, empty; the next pool beside them removes them |
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from ade.sandbox.cgroup import (
    KILL,
    NICE_STEP,
    MemoryGroup,
    MemoryGroups,
    new_folder,
    own_groups,
    remove_when_empty,
)

SERVER = "ade-server"
DELEGATED_BY = ("user.delegate", "trusted.delegate")
WANTED = ("memory", "pids", "cpu")
CONTROL = "cgroup.subtree_control"
MEMBERS = "cgroup.procs"
OUTSIDE = "/.."  # how the paths of groups begin that are not in this cgroup namespace
WEIGHT_WHOLE, WEIGHT_MIN, WEIGHT_MAX = 100, 1, 10_000
MOVE_ROUNDS = 20  # processes may be forked meanwhile


@dataclass(frozen=True, slots=True)
class JobBounds:
    """Hold what the groups of a pool limit besides memory."""

    processes: int
    nice: int
    jobs: int

    @property
    def weight(self) -> int:
        """Return the CPU weight of all jobs: each counts as one process of that niceness."""
        weight = round(self.jobs * WEIGHT_WHOLE / NICE_STEP**self.nice)
        return min(max(weight, WEIGHT_MIN), WEIGHT_MAX)


class DelegatedGroup(MemoryGroup):
    """Limit the memory and processes of one job at a time; kill all of them with one write."""

    ENTRANCE = MEMBERS
    LIMIT = "memory.max"
    EVENTS = "memory.events"

    def kill(self) -> None:
        """Kill every process of the group; kernels before 5.14 cannot."""
        with contextlib.suppress(OSError), self._opened(KILL) as file:
            os.write(file, b"1")


class DelegatedGroups(MemoryGroups):
    """Hold the groups of one pool below a delegated group."""

    VERSION = 2

    def __init__(self, folder: Path, enabled: set[str], bounds: JobBounds) -> None:
        super().__init__(folder)
        self._enabled = enabled
        self._bounds = bounds
        self.weighs = "cpu" in enabled

    @classmethod
    def find_delegated(cls, bounds: JobBounds) -> "DelegatedGroups | None":
        """Create a folder for groups where that was delegated; None if it was not."""
        base = delegated_group()
        return None if base is None else cls.below(base, bounds)

    @classmethod
    def below(cls, base: Path, bounds: JobBounds) -> "DelegatedGroups | None":
        """Create a folder for groups below a delegated group; None if memory cannot be limited."""
        try:
            enabled = _enable(base)
            folder = new_folder(base) if "memory" in enabled else None
        except OSError:
            return None
        if folder is None:
            return None
        found = cls(folder, enabled, bounds)
        try:
            for controller in sorted(enabled):
                (folder / CONTROL).write_text(f"+{controller}")
            if found.weighs:
                (folder / "cpu.weight").write_text(str(bounds.weight))
            found.probe()
        except OSError:
            found.close()
            return None
        return found

    def _group(self, folder: Path) -> MemoryGroup:
        with contextlib.suppress(FileNotFoundError):  # there is none on a kernel without swap
            (folder / "memory.swap.max").write_text("0")
        (folder / "memory.oom.group").write_text("1")
        if "pids" in self._enabled:
            (folder / "pids.max").write_text(str(self._bounds.processes))
        return DelegatedGroup(folder)


def delegated_group() -> Path | None:
    """Return the group that was delegated to this process; None if there is none."""
    below = next((path for names, path in own_groups() if names == [""]), None)
    mounted = _mounted()
    if below is None or f"/{below}".startswith(OUTSIDE) or mounted is None:
        return None
    mount, root = mounted
    if root and not f"{below}/".startswith(f"{root}/"):
        return None  # another part of the tree is mounted here
    below = below.removeprefix(root).lstrip("/")
    if below == SERVER or below.endswith(f"/{SERVER}"):  # this process was moved before
        below = below.removesuffix(SERVER).rstrip("/")
    group = mount / below
    is_namespace_root = not below and not root
    return group if _is_delegated(group, is_namespace_root) and _is_writable(group) else None


def _mounted() -> tuple[Path, str] | None:
    """Return where version 2 is mounted, and which of its groups is the root there."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in reversed(lines):  # the last one covers those before it
        facts, _, kind = line.partition(" - ")
        _, _, _, root, mount, *_ = facts.split()
        if kind.startswith("cgroup2 ") and not root.startswith(OUTSIDE):
            return Path(mount), root.strip("/")
    return None


def _is_delegated(group: Path, is_namespace_root: bool) -> bool:
    if is_namespace_root:
        return True
    for name in DELEGATED_BY:
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _is_writable(group: Path) -> bool:
    return all(os.access(path, os.W_OK) for path in (group, group / CONTROL, group / MEMBERS))


def _enable(base: Path) -> set[str]:
    """Enable the controllers that there are for the children of a group; return those enabled."""
    available = set((base / "cgroup.controllers").read_text().split()) & set(WANTED)
    enabled = set((base / CONTROL).read_text().split())
    if "memory" not in available:
        return set()
    if not available <= enabled and _needs_empty(base):
        _move_processes(base)
    for controller in sorted(available - enabled):
        # Without the others there is less to limit; without memory nothing is gained.
        with contextlib.suppress(*() if controller == "memory" else (OSError,)):
            (base / CONTROL).write_text(f"+{controller}")
    return set((base / CONTROL).read_text().split()) & set(WANTED)


def _needs_empty(base: Path) -> bool:
    """Tell whether the kernel limits a group's children only if it holds no process itself.

    The root of the whole tree is excepted; it alone has no type.
    """
    return (base / "cgroup.type").exists()


def _move_processes(base: Path) -> None:
    """Move every process of a group to its child for the server."""
    server = base / SERVER
    server.mkdir(exist_ok=True)
    for _ in range(MOVE_ROUNDS):
        members = (base / MEMBERS).read_text().split()
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                (server / MEMBERS).write_text(pid)
    remove_when_empty(server)
    raise OSError(f"{base} keeps having processes of its own")


def find_groups(bounds: JobBounds) -> MemoryGroups | None:
    """Find where this process may limit the memory of its jobs; None if it may not."""
    return DelegatedGroups.find_delegated(bounds) or MemoryGroups.find()
