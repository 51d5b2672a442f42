"""A memory group is used by one job after another, and tells each of its own end only."""

import os
import signal
from collections.abc import Iterator

import pytest

from ade.sandbox.cgroup import MemoryGroup, MemoryGroups
from ade.sandbox.cgroup_v2 import JobBounds, find_groups

LIMIT_MB = 32


@pytest.fixture
def groups() -> Iterator[MemoryGroups]:
    groups = find_groups(JobBounds(processes=20, nice=10, jobs=1))
    if groups is None:
        pytest.skip("no memory group may be made here (version 1 as root, or version 2 delegated)")
    yield groups
    groups.close()


def end_in(group: MemoryGroup, *, megabytes: int) -> int:
    """Let a process take memory in the group; return the signal that ended it, or 0."""
    with group.opened() as entrance:
        group.limit(LIMIT_MB)
        pid = os.fork()
        if pid == 0:
            os.write(entrance, b"0")
            taken = bytearray(megabytes << 20)
            taken[:: 1 << 12] = b"x" * len(taken[:: 1 << 12])
            os._exit(0)
    ended = os.waitid(os.P_PID, pid, os.WEXITED)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_KILLED else 0


def test_tells_who_was_killed_from_who_was_not(groups: MemoryGroups) -> None:
    group = groups.take()
    for megabytes, is_killed in ((1, False), (100, True), (1, False), (100, True), (100, True)):
        assert (end_in(group, megabytes=megabytes) == signal.SIGKILL) is is_killed
        assert group.has_killed() is is_killed


def test_an_unexpected_end_is_not_reported_for_the_next_job(groups: MemoryGroups) -> None:
    group = groups.take()
    assert end_in(group, megabytes=100) == signal.SIGKILL
    assert end_in(group, megabytes=1) == 0
    assert not group.has_killed()
