"""Put up a zygote's walls, then become it: `python -I -B launch.py PLAN`, the line on descriptor 3.

Whoever launches gets a child of its own: the first process of the zygote's pid namespace is cloned
as a sibling, and this process ends. It dies when the one who launched it does.
"""

import os
import signal
import socket
import sys

if __name__ == "__main__":  # run by its path, by any interpreter
    sys.path.insert(0, sys.argv[1])

# All of it before the walls: afterwards this interpreter's own modules may be out of sight.
from ade.sandbox.inside import messages
from ade.sandbox.inside.plan import FULL, INSIDE_USER, JOB_FOLDER, Plan
from ade.sandbox.walls import landlock, linux, root, seccomp

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
        if plan.level != FULL:
            _restrict_files(plan)
        _restrict_calls(plan)
    except OSError as error:
        sys.exit(f"{error.strerror or error}")
    interpreter = plan.interpreter
    script = os.path.join(plan.source, "ade", "sandbox", "inside", "zygote.py")
    os.execve(interpreter, [interpreter, "-I", "-B", script, plan.source, sys.argv[2]], os.environ)


def _enter_namespaces(plan):
    flags = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    if not plan.network:
        flags |= linux.CLONE_NEWNET
    if not plan.by_root:
        _become(plan)
        user, group = os.geteuid(), os.getegid()
        linux.unshare(linux.CLONE_NEWUSER | flags)
        map_user(user, group)
    else:
        linux.unshare(flags)
    pid, _ = linux.fork_into(linux.CLONE_PARENT)
    if pid:
        _say_launched(pid)
        os._exit(0)
    root.build(plan.readable, plan.network, [JOB_FOLDER, "/tmp", "/proc", "/dev/shm"])
    linux.set_hostname("ade")
    if plan.by_root:
        _become(plan)
    linux.drop_capabilities()


def _say_launched(pid):
    """Name the sibling that goes on from here: only its parent can bury it, should it die young."""
    with socket.socket(fileno=os.dup(LINE)) as line:
        messages.send(line, messages.Message(messages.LAUNCHED, pid))


def map_user(user, group):
    """Be an ordinary user in a new user namespace, whoever this is outside."""
    for name, text in (
        ("uid_map", f"{INSIDE_USER} {user} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{INSIDE_USER} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _become(plan):
    if plan.user != -1:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)
        # Who changes its number loses its own files in /proc until it says that it may be seen.
        linux.prctl(linux.PR_SET_DUMPABLE, 1)


def _restrict_files(plan):
    readable = [*root.readable_paths(plan.readable, plan.network), *root.DEVICES, "/proc"]
    landlock.put_up(
        readable,
        [plan.scratch, "/dev/null"],
        network=plan.network,
        of_version=plan.landlock,
    )


def _restrict_calls(plan):
    policy = seccomp.Policy(zygote=True, network=plan.network, memfd=plan.memfd)
    seccomp.put_up(seccomp.assemble(policy), listened=False)


if __name__ == "__main__":
    main()
