"""Apply a zygote's layers, then become it: `python -I -B launch.py SOURCE PLAN`, its line is fd 3.

At level `full` the zygote is the first process of a new pid namespace. It is cloned as a sibling of
this process, so that it is the worker's own child, and this process ends. The zygote dies with the
thread that launched it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

if __name__ == "__main__":  # run by its path, by any interpreter
    sys.path.insert(0, sys.argv[1])

# Everything is imported before the layers are applied: later this interpreter's own modules may be
# out of reach.
from ade.sandbox.child import zygote_messages
from ade.sandbox.child.plan import FULL, INSIDE_USER, JOB_FOLDER, ZygotePlan
from ade.sandbox.layers import landlock, linux, privileges, root_filesystem, seccomp
from ade.sandbox.layers.syscall_list import SyscallList

LINE = 3


def main() -> None:
    """Read the plan, apply the layers, become the zygote."""
    linux.close_from(4)
    os.setsid()  # a signal to its own group would reach the worker, in whatever pid namespace
    plan = ZygotePlan.from_json(sys.argv[2])
    try:
        if plan.level == FULL:
            _enter_namespaces(plan)
        else:
            _change_user(plan)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        _restrict(plan)
    except OSError as error:
        sys.exit(f"{error.strerror or error}")
    interpreter = plan.interpreter
    script = os.path.join(plan.source, "ade", "sandbox", "child", "zygote.py")
    # Not -I, which would ignore PYTHONHASHSEED; the environment holds nothing but what ADE set.
    os.execve(interpreter, [interpreter, "-s", "-B", script, plan.source, sys.argv[2]], os.environ)


def _enter_namespaces(plan: ZygotePlan) -> None:
    flags = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    if not plan.network:
        flags |= linux.CLONE_NEWNET
    if not plan.by_root:
        _change_user(plan)
        user, group = os.geteuid(), os.getegid()
        linux.unshare(linux.CLONE_NEWUSER | flags)
        mapping = SyscallList()
        privileges.map_user(mapping, INSIDE_USER, user, group)
        mapping.execute_all()
    else:
        linux.unshare(flags)
    sibling = SyscallList()
    sibling.add_fork(linux.CLONE_PARENT)
    pid, _, _ = sibling.fork()
    if pid:
        _report_launched(pid)
        os._exit(0)
    folders = [JOB_FOLDER, "/tmp", "/proc", "/dev/shm"]
    devices = root_filesystem.devices(memory_group=plan.memory_group)
    root_filesystem.build(plan.readable, plan.network, folders, devices)
    linux.set_hostname("ade")
    if plan.by_root:
        _change_user(plan)


def _report_launched(pid: int) -> None:
    """Send the worker the sibling's pid: should it die early, only its parent can reap it."""
    with socket.socket(fileno=os.dup(LINE)) as line:
        zygote_messages.send(line, zygote_messages.Message(zygote_messages.LAUNCHED, pid))


def _change_user(plan: ZygotePlan) -> None:
    if plan.user != -1:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)
        # A process that changes its user loses access to its own files in /proc until it is
        # dumpable again.
        linux.prctl(linux.PR_SET_DUMPABLE, 1)


def _restrict(plan: ZygotePlan) -> None:
    """Restrict this process to the files and system calls that a zygote needs."""
    calls = SyscallList()
    privileges.drop_capabilities(calls)
    if plan.level != FULL:
        readable = root_filesystem.readable_paths(plan.readable, plan.network)
        landlock.add_calls(
            calls,
            [*readable, *root_filesystem.devices(memory_group=plan.memory_group), "/proc"],
            [plan.scratch, "/dev/null"],
            network=plan.network,
            of_version=plan.landlock,
        )
    policy = seccomp.Policy(
        zygote=True,
        namespaces=plan.level == FULL,
        network=plan.network,
        memory_group=plan.memory_group,
    )
    seccomp.add_calls(calls, seccomp.assemble(policy), pid=os.getpid())
    calls.execute_all()


if __name__ == "__main__":
    main()
