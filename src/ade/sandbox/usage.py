"""The memory, CPU time and threads of a child and all processes that it started, from /proc.

A child is the first process of its pid namespace, so every process that it starts stays below it:
the kernel's lists of children are complete, even if a parent in between has ended.
"""

import asyncio
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar, cast

TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
EXACT_ABOVE = 0.7  # of the memory limit
PROCESSES_MAX = 4096
SOCKETS_FREE = 64  # further ones count with the memory that their buffers can hold
SOCKET_KB_USUAL = 208
TURN_SECONDS = 0.001
FACTS_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """Hold what a tree of processes uses at one moment."""

    memory_kb: int = 0
    cpu_ms: int = 0
    threads: int = 0


Found = TypeVar("Found")
# Measuring many processes takes a while; it is done in steps, so that the event loop can go on.
Steps = Generator[None, None, Found]


def at_once(steps: Steps[Found]) -> Found:
    """Do all steps, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(Found, end.value)


async def in_turns(steps: Steps[Found]) -> tuple[Found, float]:
    """Do all steps, yielding to the event loop now and then; return the result and the CPU seconds.

    Time in which this thread has to wait is not counted: on a busy machine a job would be measured
    less often, just when it can grow unseen.
    """
    took, began = 0.0, time.thread_time()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, took + time.thread_time() - began
        if (turn := time.thread_time() - began) > TURN_SECONDS:
            took += turn
            await asyncio.sleep(0)
            began = time.thread_time()


def tree(pid: int) -> list[int]:
    """List a process and everything below it."""
    return at_once(_tree(pid))


def _tree(pid: int) -> Steps[list[int]]:
    found, open_ends = [pid], [pid]
    while open_ends and len(found) < PROCESSES_MAX:
        for child in _children(open_ends.pop()):
            found.append(child)
            open_ends.append(child)
        yield
    return found


def _of_each(processes: list[int], measure: Callable[[int], Found]) -> Steps[dict[int, Found]]:
    """Measure processes one by one."""
    found = {}
    for each in processes:
        found[each] = measure(each)
        yield
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            children += map(int, read_all(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass  # it has just ended
    return children


def resident_kb(pid: int) -> int:
    """Return a process's resident memory: cheap, but counts shared memory in full."""
    return memory_of(pid).resident_kb


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Hold a process's memory: what it touched, and what smaps_rollup leaves out.

    The latter are its page tables and huge pages.
    """

    resident_kb: int = 0
    besides_kb: int = 0


def memory_of(pid: int) -> ProcessMemory:
    """Read the memory of a process; zeros if it has ended."""
    facts = _memory_facts(pid)
    return ProcessMemory(
        _kb(facts, b"VmRSS:") + _kb(facts, b"VmSwap:"),
        _kb(facts, b"VmPTE:") + _kb(facts, b"HugetlbPages:"),
    )


def _memory_facts(pid: int) -> bytes:
    """Read a process's status, by another thread if its first one has ended."""
    facts = _status(f"/proc/{pid}")
    if not facts or b"VmRSS:" in facts:
        return facts
    for thread in _threads(pid):
        other = _status(f"/proc/{pid}/task/{thread}")
        if b"VmRSS:" in other:
            return other
    return facts


def has_memory(place: str) -> bool:
    """Tell whether the thread that a folder of /proc describes has not ended."""
    return b"VmRSS:" in _status(place)


def _status(place: str) -> bytes:
    try:
        return read_facts(f"{place}/status")
    except OSError:
        return b""


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _kb(facts: bytes, name: bytes) -> int:
    _, _, behind = facts.partition(name)
    return int(behind.split(None, 1)[0]) if behind else 0


def socket_buffers_kb(pid: int) -> int:
    """Return the memory that the sockets of a process's network namespace can hold, roughly.

    A few are free: what is in them is not known, and most hold little.
    """
    for place in (f"/proc/{pid}", *(f"/proc/{pid}/task/{thread}" for thread in _threads(pid))):
        try:
            _, _, behind = read_facts(f"{place}/net/sockstat").partition(b"used ")
        except OSError:  # this thread has ended
            continue
        return max(0, int(behind.split(None, 1)[0]) - SOCKETS_FREE) * SOCKET_KB
    return 0


def read_all(path: str) -> bytes:
    """Read a file of /proc that may be long, unbuffered as `read_facts` does."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = piece = os.read(file, FACTS_BYTES_MAX)
        while piece:
            piece = os.read(file, FACTS_BYTES_MAX)
            content += piece
        return content
    finally:
        os.close(file)


def read_facts(path: str) -> bytes:
    """Read a short file of /proc or a cgroup, unbuffered because it is done many times per job."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, FACTS_BYTES_MAX)
    finally:
        os.close(file)


def share_kb(pid: int) -> int | None:
    """Return a process's proportional share of its memory (PSS); takes milliseconds.

    None if the process may not be inspected, or has just ended.
    """
    return rolled_up_kb(pid, "Pss:")


def own_kb(pid: int) -> int | None:
    """Return a process's proportional share of memory that is not file-backed, as `share_kb`."""
    return rolled_up_kb(pid, "Pss_Anon:", "Pss_Shmem:", "Swap:")


def rolled_up_kb(pid: int, *names: str) -> int | None:
    """Add up the lines of a process's smaps_rollup that begin with one of these names."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(names))
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """Hold a process's CPU time, that of its reaped children, and its number of threads.

    `code` is the address of its program: a fork inherits it, a new program gets a random one.
    """

    own_ms: int = 0
    waited_for_ms: int = 0
    threads: int = 0
    code: int = 0


def times_of(pid: int) -> ProcessTimes:
    """Read the CPU time and threads of a process; zeros if it has ended."""
    try:
        fields = read_facts(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return ProcessTimes()
    user, system, childrens_user, childrens_system = map(int, fields[11:15])
    return ProcessTimes(
        (user + system) * TICK_MS,
        (childrens_user + childrens_system) * TICK_MS,
        int(fields[17]),
        int(fields[23]),
    )


def _socket_kb() -> int:
    """Return how much memory one socket can have sent that is not read yet."""
    try:
        return int(read_facts("/proc/sys/net/core/wmem_default")) // 1024
    except (OSError, ValueError):
        return SOCKET_KB_USUAL


SOCKET_KB = _socket_kb()


class UsageMonitor:
    """Measure one tree of processes repeatedly."""

    def __init__(self, pid: int, limit_kb: int, *, has_own_network: bool = False) -> None:
        at_start = memory_of(pid)
        self.baseline_kb = at_start.resident_kb
        self._besides_at_start_kb = at_start.besides_kb
        self._has_own_network = has_own_network
        self._code = times_of(pid).code
        self._pid = pid
        self._limit_kb = limit_kb
        # The kernel drops the CPU time of a process that is not waited for; it is kept here.
        self._own_ms: dict[int, int] = {}

    def measure(self) -> Steps[TreeUsage]:
        """Measure; use the exact, expensive figure only when the cheap one comes near the limit."""
        processes = yield from _tree(self._pid)
        times = yield from _of_each(processes, times_of)
        held = yield from _of_each(processes, memory_of)
        seen = {each: its.resident_kb for each, its in held.items()}
        for each, its in times.items():
            # A forked process shares the zygote's memory; one that exec'd a program does not.
            if each == self._pid or its.code == self._code != 0:
                seen[each] = max(0, seen[each] - self.baseline_kb)
        memory_kb = sum(seen.values())
        if memory_kb > EXACT_ABOVE * self._limit_kb:
            closer = yield from _of_each(processes, own_kb)
            memory_kb = sum(seen[e] if own is None else own for e, own in closer.items())
        memory_kb += sum(max(0, m.besides_kb - self._besides_at_start_kb) for m in held.values())
        if self._has_own_network:
            memory_kb += socket_buffers_kb(self._pid)
        self._own_ms.update({each: its.own_ms for each, its in times.items() if its.threads})
        alive = sum(its.own_ms + its.waited_for_ms for its in times.values())
        threads = sum(its.threads for its in times.values())
        return TreeUsage(memory_kb, max(alive, sum(self._own_ms.values())), threads)
