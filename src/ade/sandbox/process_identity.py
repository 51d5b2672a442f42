"""Find out which process a pidfd names, and whether it is the one that it should be.

A zygote runs the packages of its environment, so a pidfd that it sends may name any process of the
machine, the server included. It is used as a hint only: the server opens a pidfd of its own and
keeps it if the kernel says that the process is a child of this zygote, was started after the
request, and runs as the user and in the namespace that the plan says.

The facts are read from /proc by pid, and a pid can be given to another process. So the pidfd is
opened before they are read, and must still name a process that was not reaped afterwards: until it
is, its pid is not given away.
"""

import os
import signal
import time
from dataclasses import dataclass

from ade.sandbox.usage import read_facts

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
HANDLED = (b"SigCgt", b"SigIgn")  # of /proc/PID/status
PARENT_FIELD, START_FIELD = 1, 19  # of /proc/PID/stat, counted from behind the name


class Impostor(Exception):
    """A pidfd does not name the process that it should name."""


class ProcessGone(Exception):
    """The process ended, and was reaped, before it could be inspected."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """Hold what the kernel says of a process; pids are those of this process's namespace."""

    parent: int
    users: tuple[int, ...]
    pids: tuple[int, ...]  # its pid in each namespace, from this one inwards
    started_ticks: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Hold what a process must be."""

    parent: int
    user: int | None  # None if it is not known
    since_ticks: int  # it was started at this time or later
    depth: int | None  # in so many nested pid namespaces, the first process of the innermost
    known_pids: frozenset[int] = frozenset()  # pids that it must not have


def boot_ticks() -> int:
    """Return the time since the boot, in the unit of /proc/PID/stat, rounded down as there."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)


def ticks_to_ms(ticks: int) -> int:
    """Return a time in that unit as milliseconds."""
    return ticks * 1000 // TICKS_PER_SECOND


def pid_of(pidfd: int) -> int | None:
    """Return the pid of a pidfd's process; -1 if it was reaped, None if this is not a pidfd.

    Only the kernel writes fdinfo, and only that of a pidfd has this line. The folder /proc/PID has
    none, though some system calls take it for a pidfd.
    """
    _, found, behind = read_facts(f"/proc/self/fdinfo/{pidfd}").partition(b"\nPid:")
    return int(behind.split(b"\n", 1)[0]) if found else None


def handles_signal(pid: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal, or ignores it."""
    try:
        status = read_facts(f"/proc/{pid}/status")
    except OSError:
        return False
    masks = (status.partition(b"\n%s:" % name)[2].split(b"\n", 1)[0] for name in HANDLED)
    return any(int(mask or b"0", 16) >> (number - 1) & 1 for mask in masks)


def facts_of(pid: int) -> ProcessFacts:
    """Read the facts of a process; raises OSError if there is none."""
    status = read_facts(f"/proc/{pid}/status")
    stat = read_facts(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, START_FIELD + 1)
    return ProcessFacts(
        parent=int(stat[PARENT_FIELD]),
        users=_numbers(status, b"\nUid:"),
        pids=_numbers(status, b"\nNSpid:"),
        started_ticks=int(stat[START_FIELD]),
    )


def _numbers(status: bytes, name: bytes) -> tuple[int, ...]:
    """Return the numbers of one line; none if there is no such line."""
    return tuple(map(int, status.partition(name)[2].split(b"\n", 1)[0].split()))


def has_ended(pidfd: int) -> bool:
    """Tell whether the process was reaped; a zombie was not."""
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it may not be signalled, so it is there
    return False


def open_verified(hint: int, expected: Expected) -> tuple[int, int]:
    """Return (pid, pidfd) of the process that a received descriptor names, if it is the right one.

    Raises Impostor if it is not, and ProcessGone if it was reaped meanwhile.
    """
    pid = pid_of(hint)
    if pid is None:
        raise Impostor("the descriptor is not a pidfd")
    if pid == -1:
        raise ProcessGone
    if pid in (0, 1, os.getpid(), expected.parent) or pid in expected.known_pids:
        raise Impostor("the pidfd names a process that is not a new child")
    return pid, open_child(pid, expected)


def open_child(pid: int, expected: Expected) -> int:
    """Open a pidfd of a process that must be as expected; raises as `open_verified`."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        raise ProcessGone from None
    try:
        try:
            facts = facts_of(pid)
        except (OSError, IndexError, ValueError):
            facts = None
        if has_ended(pidfd):
            raise ProcessGone
        if facts is None:
            raise Impostor("the process could not be inspected")
        if (wrong := _difference(facts, expected)) is not None:
            raise Impostor(wrong)
    except BaseException:
        os.close(pidfd)
        raise
    return pidfd


def _difference(facts: ProcessFacts, expected: Expected) -> str | None:
    """Say in what a process is not as expected."""
    if facts.parent != expected.parent:
        return "the pidfd names a process of another parent"
    if facts.started_ticks < expected.since_ticks:
        return "the pidfd names a process that was there before the request"
    if expected.user is not None and set(facts.users) != {expected.user}:
        return "the pidfd names a process of another user"
    if expected.depth is not None and (len(facts.pids) != expected.depth or facts.pids[-1] != 1):
        return "the pidfd names a process of another pid namespace"
    return None
