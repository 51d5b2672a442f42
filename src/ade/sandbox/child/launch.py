"""Apply a zygote's layers, then become it: `python -I -B launch.py PLAN`, the line is fd 3.

Whoever launches gets a child of its own: the first process of the zygote's pid namespace is cloned
as a sibling, and this process ends. It dies when the one who launched it does.
"""

import os
import signal
import socket
import sys

if __name__ == "__main__":  # run by its path, by any interpreter
    sys.path.insert(0, sys.argv[1])

# All of it before the layers: afterwards this interpreter's own modules may be out of sight.
from ade.sandbox.child import zygote_messages
from ade.sandbox.child.plan import FULL, INSIDE_USER, JOB_FOLDER, Plan
from ade.sandbox.layers import landlock, linux, privileges, root_filesystem, seccomp
from ade.sandbox.layers.syscall_list import SyscallList

LINE = 3


def main():
    """Read the plan, build, become the zygote."""
    linux.close_from(4)
    plan = Plan.from_json(sys.argv[2])
    try:
        if plan.level == FULL:
            _enter_namespaces(plan)
        else:
            _become(plan)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        _restrict(plan)
    except OSError as error:
        sys.exit(f"{error.strerror or error}")
    interpreter = plan.interpreter
    script = os.path.join(plan.source, "ade", "sandbox", "child", "zygote.py")
    os.execve(interpreter, [interpreter, "-I", "-B", script, plan.source, sys.argv[2]], os.environ)


def _enter_namespaces(plan):
    flags = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    if not plan.network:
        flags |= linux.CLONE_NEWNET
    if not plan.by_root:
        _become(plan)
        user, group = os.geteuid(), os.getegid()
        linux.unshare(linux.CLONE_NEWUSER | flags)
        as_user = SyscallList()
        privileges.map_user(as_user, INSIDE_USER, user, group)
        as_user.make_all()
    else:
        linux.unshare(flags)
    sibling = SyscallList()
    sibling.add_fork(linux.CLONE_PARENT)
    pid, _, _ = sibling.fork()
    if pid:
        _say_launched(pid)
        os._exit(0)
    root_filesystem.build(plan.readable, plan.network, [JOB_FOLDER, "/tmp", "/proc", "/dev/shm"])
    linux.set_hostname("ade")
    if plan.by_root:
        _become(plan)


def _say_launched(pid):
    """Name the sibling that goes on from here: only its parent can bury it, should it die young."""
    with socket.socket(fileno=os.dup(LINE)) as line:
        zygote_messages.send(line, zygote_messages.Message(zygote_messages.LAUNCHED, pid))


def _become(plan):
    if plan.user != -1:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)
        # Who changes its number loses its own files in /proc until it says that it may be seen.
        linux.prctl(linux.PR_SET_DUMPABLE, 1)


def _restrict(plan):
    """Let this process see and ask for no more than a zygote needs."""
    calls = SyscallList()
    if plan.level == FULL:
        privileges.drop_capabilities(calls)
    else:
        readable = [
            *root_filesystem.readable_paths(plan.readable, plan.network),
            *root_filesystem.DEVICES,
            "/proc",
        ]
        landlock.add_calls(
            calls,
            readable,
            [plan.scratch, "/dev/null"],
            network=plan.network,
            of_version=plan.landlock,
        )
    policy = seccomp.Policy(zygote=True, network=plan.network, memfd=plan.memfd)
    seccomp.add_calls(calls, seccomp.assemble(policy), pid=os.getpid())
    calls.make_all()


if __name__ == "__main__":
    main()
