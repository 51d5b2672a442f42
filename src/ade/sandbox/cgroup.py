"""Control groups (cgroups), where this process may create them: exact limits, by the kernel.

This module has what both versions of the interface share, and version 1; `cgroup_v2` has version 2.
Memory groups limit the processes of one job. A group is used by one child after another and never
by two at once: creating and removing one for each job would cost more than the job. Without groups
the supervisor alone enforces the memory limit.

One CPU group lowers the weight of all jobs of a pool, but not of its zygotes, which other jobs wait
for. Without it, jobs have a low priority by their niceness alone.

A process joins a group by itself: to move another process, the kernel waits a dozen milliseconds
until no process can be in the middle of a fork.
"""

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ade.domain.units import MIB
from ade.sandbox.folders import abandoned, own_name
from ade.sandbox.usage import read_facts

ROOT = Path("/sys/fs/cgroup")
KILL = "cgroup.kill"  # of version 2
IDLE_MB = 1024
# The weight of a process of niceness 0; each step of niceness divides it by NICE_STEP.
SHARES_WHOLE, NICE_STEP, SHARES_MIN = 1024, 1.25, 2
REMOVE_TRIES = 50
REMOVE_SECONDS = 0.02


class MemoryGroup:
    """Limit the memory of one tree of processes at a time."""

    ENTRANCE = "tasks"
    LIMIT = "memory.limit_in_bytes"
    EVENTS = "memory.oom_control"

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._kills_seen = 0
        self._is_up_to_date = True

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Open the file that a process joins by; it writes 0 to it to join with its threads."""
        if not self._is_up_to_date:  # `has_killed` was not called for the child before
            self._kills_seen = self._kills()
        self._is_up_to_date = False
        with self._opened(self.ENTRANCE) as entrance:
            yield entrance

    def limit(self, limit_mb: int) -> None:
        """Set the memory limit of all processes in the group."""
        with self._opened(self.LIMIT) as limit:
            os.write(limit, b"%d" % (limit_mb * MIB))

    def has_killed(self) -> bool:
        """Tell whether the kernel killed a process of the group for its memory since `opened`."""
        before, self._kills_seen = self._kills_seen, self._kills()
        self._is_up_to_date = True
        return self._kills_seen > before

    def kill(self) -> None:
        """Kill every process of the group where the kernel can do that; version 1 cannot.

        A job's processes die with its first one in any case.
        """

    def _kills(self) -> int:
        events = read_facts(f"{self._folder}/{self.EVENTS}")
        _, _, behind = events.partition(b"oom_kill ")
        return int(behind.split(b"\n", 1)[0] or 0)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """Open a file for writing, unbuffered because it is done for every job."""
        file = os.open(f"{self._folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield file
        finally:
            os.close(file)

    def remove(self) -> None:
        """Remove the group, after waiting a moment for its last process to be gone."""
        remove_when_empty(Path(self._folder))


class MemoryGroups:
    """Hold the memory groups of one pool; `weighs` tells whether they also weigh its CPU time."""

    VERSION = 1
    weighs = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._free: list[MemoryGroup] = []
        self._made: list[MemoryGroup] = []

    @classmethod
    def find(cls) -> "MemoryGroups | None":
        """Create a folder for groups below this process's own; None if that is not allowed."""
        below = next((path for names, path in own_groups() if "memory" in names), None)
        folder = None if below is None else new_folder(ROOT / "memory" / below)
        if folder is None:
            return None
        found = cls(folder)
        try:
            found.probe()
        except OSError:
            found.close()
            return None
        return found

    def probe(self) -> None:
        """Create one group and use it; raise OSError if something is not allowed."""
        group = self.take()
        group.limit(IDLE_MB)
        group.has_killed()
        self.give_back(group)

    def take(self) -> MemoryGroup:
        """Return a group that is not in use."""
        if self._free:
            return self._free.pop()
        folder = self._folder / f"job-{len(self._made)}"
        folder.mkdir()
        group = self._group(folder)
        self._made.append(group)
        return group

    def _group(self, folder: Path) -> MemoryGroup:
        return MemoryGroup(folder)

    def give_back(self, group: MemoryGroup) -> None:
        """Return a group whose processes are dead, for the next child."""
        self._free.append(group)

    def close(self) -> None:
        """Remove all groups."""
        for group in self._made:
            group.remove()
        remove_when_empty(self._folder)


class CpuGroup:
    """Give each job the CPU weight of one nice process, however many processes it starts.

    Niceness applies to each process, and a job may have dozens of busy ones.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entrance = os.open(folder / "tasks", os.O_WRONLY | os.O_CLOEXEC)

    @classmethod
    def find(cls, nice: int, jobs: int) -> "CpuGroup | None":
        """Create a group for a number of concurrent jobs; None if that is not allowed."""
        found = next((path for names, path in own_groups() if "cpu" in names), None)
        folder = None if found is None else new_folder(ROOT / "cpu" / found)
        if folder is None:
            return None
        shares = max(SHARES_MIN, round(jobs * SHARES_WHOLE / NICE_STEP**nice))
        try:
            (folder / "cpu.shares").write_text(str(shares))
            return cls(folder)
        except OSError:
            remove_when_empty(folder)
            return None

    def close(self) -> None:
        """Remove the group."""
        os.close(self.entrance)
        remove_when_empty(self._folder)


def _remove_left(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if (folder / KILL).exists():
            (folder / KILL).write_text("1")
        for inside in folder.iterdir():
            if inside.is_dir():
                inside.rmdir()
        folder.rmdir()


def remove_when_empty(folder: Path) -> None:
    """Remove a group's folder; the kernel refuses while a process is dying in it."""
    for _ in range(REMOVE_TRIES):
        try:
            folder.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                return
        time.sleep(REMOVE_SECONDS)


def new_folder(base: Path) -> Path | None:
    """Create a folder of this process, if that is allowed, and remove abandoned ones."""
    for left in abandoned(base):
        _remove_left(left)
    folder = base / own_name()
    try:
        folder.mkdir()
    except OSError:
        return None
    return folder


def own_groups() -> list[tuple[list[str], str]]:
    """List the groups that this process is in: the controllers of each, and its path."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    parts = (line.split(":", 2) for line in lines)
    return [(controllers.split(","), path.lstrip("/")) for _, controllers, path in parts]
