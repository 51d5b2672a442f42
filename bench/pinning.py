"""Keep what is measured on one core, and what measures on another.

Between virtual cores a round trip costs several times as much as on one core, and varies with what
the neighbours do. So client, worker and database server share one core, and the load generator
and the progress display take another one (the same one when the machine has no second).
ADE_BENCH_CORES (`measured,other`) chooses them; it is set for child processes, which would
otherwise see only the core that their parent is pinned to.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_ALLOWED = sorted(os.sched_getaffinity(0))
_CHOSEN = os.environ.setdefault("ADE_BENCH_CORES", f"{_ALLOWED[-1]},{_ALLOWED[0]}")
MEASURED_CORE, OTHER_CORE = (int(core) for core in _CHOSEN.split(","))


def pin(core: int, pid: int = 0) -> None:
    """Pin a process with all its threads; those that it starts later inherit the core."""
    pid = pid or os.getpid()
    for task in _numbers(Path(f"/proc/{pid}/task")):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(task, {core})


def pin_tree(core: int, root: int) -> int:
    """Pin a process and its descendants; return how many processes that were."""
    family = {root}
    parents = dict(_parents())
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        family |= children
        grown = bool(children)
    for pid in family:
        pin(core, pid)
    return len(family)


def parent_of(pid: int) -> int:
    return dict(_parents())[pid]


def _parents() -> Iterator[tuple[int, int]]:
    for pid in _numbers(Path("/proc")):
        with contextlib.suppress(OSError):
            # the command's name may hold spaces and brackets; the fields after it do not
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            yield pid, int(fields[1])


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()]
    except OSError:
        return []
