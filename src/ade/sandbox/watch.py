"""How much a child and everything that it started are using, read from /proc.

A child is the first process of its namespace, so whatever it starts stays below it: the kernel's
lists of children are complete, however often something forks and lets its parent die.
"""

import os
from dataclasses import dataclass

PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
LOOK_CLOSER = 0.7
PROCESSES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Usage:
    """Hold what a tree of processes uses at one moment."""

    memory_kb: int = 0
    cpu_ms: int = 0
    threads: int = 0


def tree(pid: int) -> list[int]:
    """List a process and everything below it."""
    found, open_ends = [pid], [pid]
    while open_ends and len(found) < PROCESSES_MAX:
        for child in _children(open_ends.pop()):
            found.append(child)
            open_ends.append(child)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += map(int, file.read().split())
    except OSError:
        pass  # it has just ended
    return children


def resident_kb(pid: int) -> int:
    """Return a process's resident memory; cheap, and too much where memory is shared."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_KB
    except (OSError, IndexError):
        return 0


def own_kb(pid: int) -> int:
    """Return a process's fair share of the memory that is not a file's; costs milliseconds."""
    total = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith(("Pss_Anon:", "Pss_Shmem:", "Swap:")):
                    total += int(line.split()[1])
    except OSError:
        return 0
    return total


def cpu_ms_and_threads(pid: int) -> tuple[int, int]:
    """Return the CPU time of a process and of its children that have ended, and its threads."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return sum(map(int, fields[11:15])) * TICK_MS, int(fields[17])


def measure(pid: int, baseline_kb: int, limit_kb: int) -> Usage:
    """Measure a tree; look closer, at a price, only when the cheap figure comes near the limit."""
    processes = tree(pid)
    memory_kb = sum(max(0, resident_kb(each) - baseline_kb) for each in processes)
    if memory_kb > LOOK_CLOSER * limit_kb:
        memory_kb = sum(own_kb(each) for each in processes)
    cpu_ms = threads = 0
    for each in processes:
        its_cpu_ms, its_threads = cpu_ms_and_threads(each)
        cpu_ms += its_cpu_ms
        threads += its_threads
    return Usage(memory_kb, cpu_ms, threads)
