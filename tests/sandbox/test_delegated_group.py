"""Groups of version 2: found where they are delegated, and entered, killed and removed for real.

The first tests need the interface only, which every machine with cgroup2 mounted has; those that
limit memory need a delegated group with the memory controller.
"""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ade.sandbox import cgroup_v2
from ade.sandbox.cgroup_v2 import DelegatedGroup, DelegatedGroups, JobBounds
from ade.sandbox.folders import PREFIX

BOUNDS = JobBounds(processes=20, nice=10, jobs=3)


@pytest.fixture
def group() -> Iterator[Path]:
    """Make a group that nothing is delegated of."""
    mounted = cgroup_v2._mounted()
    if mounted is None or not os.access(mounted[0], os.W_OK):
        pytest.skip("no group of version 2 may be made here (cgroup2 mounted, as root)")
    made = mounted[0] / f"test-{secrets.token_hex(4)}"
    made.mkdir()
    yield made
    (made / "cgroup.kill").write_text("1")
    for inside in sorted(made.rglob("*/"), reverse=True):
        cgroup_v2.remove_when_empty(inside)
    cgroup_v2.remove_when_empty(made)
    assert not made.exists()


def told_in(group: Path, code: str) -> list[str]:
    """Run code in a process of the group, and return what it prints."""
    join = f"open('{group}/cgroup.procs', 'w').write('0')"
    given = f"import sys; sys.path[:] = {sys.path!r}\n{join}\nfrom ade.sandbox.cgroup_v2 import *\n"
    program = [sys.executable, "-I", "-c", f"{given}from ade.sandbox import cgroup_v2\n{code}"]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_group_is_used_only_if_it_is_delegated(group: Path) -> None:
    assert told_in(group, "print(delegated_group())") == ["None"]
    os.setxattr(group, "user.delegate", b"1")
    assert told_in(group, "print(delegated_group())") == [str(group)]


def test_a_namespace_of_its_own_is_delegated_as_a_whole(group: Path, tmp_path: Path) -> None:
    code = "from ade.sandbox.layers import linux\nlinux.unshare(0x02000000)\n"  # CLONE_NEWCGROUP
    # The mount is still that of the machine, and has nothing of this namespace.
    assert told_in(group, code + "print(delegated_group())") == ["None"]
    enter = (
        "linux.unshare(linux.CLONE_NEWNS)\n"
        "linux.mount(None, '/', None, linux.MS_REC | linux.MS_PRIVATE)\n"
        f"linux.mount('cgroup2', '{tmp_path}', 'cgroup2', 0)\n"
    )
    assert told_in(group, code + enter + "print(delegated_group())") == [str(tmp_path)]


def test_processes_are_moved_out_of_the_delegated_group_and_it_is_found_again(group: Path) -> None:
    os.setxattr(group, "user.delegate", b"1")
    code = """
cgroup_v2._move_processes(delegated_group())
print(open("/proc/self/cgroup").read().splitlines()[-1].endswith("/ade-server"))
print(delegated_group())
print(repr((delegated_group() / "cgroup.procs").read_text()))
"""
    assert told_in(group, code) == ["True", str(group), "''"]


def test_without_a_memory_controller_nothing_is_made(group: Path) -> None:
    if "memory" in (group / "cgroup.controllers").read_text().split():
        pytest.skip("here is one")
    assert DelegatedGroups.below(group, BOUNDS) is None
    assert [path.name for path in group.iterdir() if path.is_dir()] == []


def test_a_whole_tree_is_killed_by_one_write(group: Path) -> None:
    folder = group / "job-0"
    folder.mkdir()
    job = DelegatedGroup(folder)
    up, told = os.pipe()
    entrance = os.open(folder / "cgroup.procs", os.O_WRONLY)
    pid = os.fork()
    if pid == 0:
        os.write(entrance, b"0")
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                break
        os.write(told, b"x")
        signal.pause()
    os.close(entrance)
    for _ in range(3):
        assert os.read(up, 1) == b"x"
    assert len((folder / "cgroup.procs").read_text().split()) == 3
    job.kill()
    ended = os.waitid(os.P_PID, pid, os.WEXITED)
    assert ended is not None
    assert ended.si_status == signal.SIGKILL
    job.remove()
    assert not folder.exists()
    os.close(up)
    os.close(told)


def test_what_a_dead_server_left_is_removed(group: Path) -> None:
    with subprocess.Popen(["/bin/true"]) as dead:
        pass
    left = group / f"{PREFIX}{dead.pid}-0"
    (left / "job-0").mkdir(parents=True)
    made = cgroup_v2.new_folder(group)
    assert made is not None
    assert not left.exists()


# --- with the memory controller ------------------------------------------------------------------


@pytest.fixture
def groups() -> Iterator[DelegatedGroups]:
    found = DelegatedGroups.find_delegated(BOUNDS)
    if found is None:
        pytest.skip("no group of version 2 with memory is delegated to the tests")
    yield found
    found.close()
    assert not found._folder.exists()


def test_a_job_may_use_no_swap_and_ends_as_a_whole(groups: DelegatedGroups) -> None:
    folder = Path(groups.take()._folder)
    assert (folder / "memory.oom.group").read_text() == "1\n"
    assert (folder / "pids.max").read_text() == f"{BOUNDS.processes}\n"
    swap = folder / "memory.swap.max"
    assert not swap.exists() or swap.read_text() == "0\n"


def test_jobs_weigh_as_one_nice_process_each(groups: DelegatedGroups) -> None:
    if not groups.weighs:
        pytest.skip("the cpu controller is not delegated")
    assert (groups._folder / "cpu.weight").read_text() == f"{BOUNDS.weight}\n"
    assert BOUNDS.weight == pytest.approx(3 * 100 / 1.25**10, abs=1)


def test_children_die_with_the_process_that_took_too_much(groups: DelegatedGroups) -> None:
    group = groups.take()
    group.limit(32)
    up, told = os.pipe()

    def take() -> None:
        if os.fork() == 0:
            os.write(told, str(os.getpid()).encode())
            signal.pause()
        os.read(up, 20)
        kept = bytearray(100 << 20)
        kept[:: 1 << 12] = b"x" * len(kept[:: 1 << 12])

    assert _ended_in(group, take) == signal.SIGKILL
    assert group.has_killed()
    cgroup_v2.remove_when_empty(Path(group._folder))
    assert not Path(group._folder).exists()  # empty: the sleeping child was killed too
    os.close(up)
    os.close(told)


def _ended_in(group: object, act: Callable[[], None]) -> int:
    assert isinstance(group, DelegatedGroup)
    with group.opened() as entrance:
        pid = os.fork()
        if pid == 0:
            os.write(entrance, b"0")
            act()
            os._exit(0)
    ended = os.waitid(os.P_PID, pid, os.WEXITED)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_KILLED else 0
