"""One job's process, from its fork to its end.

In order: namespaces, descriptors, mounts, files, calls; then a look at what stands; then "ready";
then, and not before, an order to run somebody's code. Whatever fails on the way is said on the
line as a setup error, and nothing is run.
"""

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
import time

from ade.sandbox.inside.launch import map_user
from ade.sandbox.inside.plan import FULL, INSIDE_USER, JOB_FOLDER
from ade.sandbox.walls import landlock, linux, root, seccomp

LINE = 3
LENGTH = struct.Struct("=I")
READY = b"R"
FILES_AT_ONCE = 64
COPY_BYTES = 1 << 20
NAMESPACES = {
    "user": linux.CLONE_NEWUSER,
    "pid": linux.CLONE_NEWPID,
    "mount": linux.CLONE_NEWNS,
    "net": linux.CLONE_NEWNET,
    "ipc": linux.CLONE_NEWIPC,
    "uts": linux.CLONE_NEWUTS,
}
OWN_FACTS = ("status", "stat", "statm", "maps", "smaps", "mem", "fd", "fdinfo", "cmdline", "comm",
             "environ", "auxv", "exe", "limits", "cgroup", "io", "sched")  # fmt: skip
OWN_PLACES = (f"{JOB_FOLDER}/", "/tmp/", "/dev/shm/")
_prepared: dict = {}


class Unready(Exception):
    """A wall that was put up does not stand."""


def prepare(plan):
    """Do once, in the zygote, what is the same for every child."""
    policy = seccomp.Policy(**plan.policy_facts, listened="notify" not in plan.without)
    _prepared["filter"] = seccomp.assemble(policy)
    readable = root.readable_paths(plan.readable, plan.network)
    # An environment below /tmp must still be seen when a job has a /tmp of its own.
    _prepared["hidden"] = [path for path in readable if path.startswith(OWN_PLACES)]
    _prepared["readable"] = [*readable, *root.DEVICES]


def fork(plan):
    """Fork; return (pid, pidfd) to the zygote, (0, -1) to the child."""
    if plan.level == FULL:
        flags = 0
        for name, flag in NAMESPACES.items():
            if name not in plan.without and not (name == "net" and plan.network):
                flags |= flag
        return linux.fork_into(flags)
    pid = os.fork()
    return (pid, os.pidfd_open(pid)) if pid else (0, -1)


def live(plan, number, descriptors):
    """Be a child from its fork to its end; never return to the zygote's loop."""
    status = 70
    try:
        status = _live(plan, number, descriptors)
    except BaseException as error:  # of the runtime itself: the job's own were caught
        _say({"setup_error": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(status)


def _live(plan, number, descriptors):
    folder = JOB_FOLDER if plan.level == FULL else os.path.join(plan.scratch, str(number))
    os.setsid()
    linux.set_name("ade-ready")
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    stdout, stderr, line, *memory_group = descriptors
    for entrance in memory_group:
        os.write(entrance, b"0")
    _take_descriptors(stdout, stderr, line)
    if plan.level == FULL:
        _enter(plan)
    os.chdir(folder)
    listener = _put_up_walls(plan, folder)
    _check(plan)
    _say_ready(listener)
    order = _receive_order()
    if order is None:
        return 0
    os.environ["HOME"] = os.environ["ADE_JOB_FOLDER"] = folder
    os.environ["TMPDIR"] = "/tmp" if plan.level == FULL else os.path.join(folder, "tmp")
    os.makedirs(os.environ["TMPDIR"], exist_ok=True)
    _limit(order["limits"])
    if plan.cold:
        _become_another_interpreter(plan, order)
    return run(order)


def _take_descriptors(stdout, stderr, line):
    """Keep four descriptors: nothing to read, two to write, the line."""
    keep = [os.open("/dev/null", os.O_RDONLY), stdout, stderr, line]
    # Out of the way first, so that no descriptor is overwritten before it was moved.
    keep = [os.dup2(descriptor, 200 + i) for i, descriptor in enumerate(keep)]
    for number, descriptor in enumerate(keep):
        os.dup2(descriptor, number)
    linux.close_from(4)


def _enter(plan):
    """Be somebody in the new user namespace, and mount what is this job's alone."""
    if "user" not in plan.without:
        outside = plan.user if plan.by_root else INSIDE_USER
        map_user(outside, outside)
    if "mount" in plan.without:
        return
    flags = linux.MS_NOSUID | linux.MS_NODEV
    hidden = {path: linux.clone_tree(path) for path in _prepared["hidden"]}
    for path, megabytes, mode in (
        (JOB_FOLDER, plan.job_mb, "700"),
        ("/tmp", plan.tmp_mb, "1777"),
        ("/dev/shm", plan.shared_mb, "1777"),
    ):
        size = f"size={megabytes}m,nr_inodes={plan.inodes},mode={mode}"
        linux.mount("tmpfs", path, "tmpfs", flags, size)
    for path, tree in hidden.items():
        os.makedirs(path)
        linux.place_tree(tree, path)
        os.close(tree)
    if "pid" not in plan.without:
        linux.mount("proc", "/proc", "proc", root.PROC_FLAGS, "subset=pid")


def _put_up_walls(plan, folder):
    """Give up everything that can be given up; return the listener of refused calls."""
    full = plan.level == FULL
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, plan.open_files),
        # Without a user namespace the count is of a user, and the worker's own has other processes.
        (resource.RLIMIT_NPROC, plan.processes if full or plan.user != -1 else None),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        if most is not None and "limits" not in plan.without:
            resource.setrlimit(what, (most, most))
    if "capabilities" not in plan.without:
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if plan.landlock and "landlock" not in plan.without:
        _restrict_files(plan, folder)
    if "seccomp" in plan.without:
        return -1
    return seccomp.put_up(_prepared["filter"], listened="notify" not in plan.without)


def _restrict_files(plan, folder):
    writable, listable = [folder, "/dev/null"], []
    if plan.level == FULL:
        readable = ["/"]
        writable += ["/tmp", "/dev/shm"]
    else:
        # Not the whole folder: what the machine's network does stands there, too.
        own = f"/proc/{os.getpid()}"
        readable = [*_prepared["readable"], *(f"{own}/{name}" for name in OWN_FACTS)]
        listable = [f"{own}/task"]
    landlock.put_up(
        readable,
        writable,
        network=plan.network,
        of_version=plan.landlock,
        listable=listable,
    )


def _check(plan):
    """Look at the walls from inside, through the kernel's eyes."""
    if plan.without:
        return
    with open("/proc/self/status", encoding="ascii") as file:
        facts = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    if int(facts["CapEff"], 16) or int(facts["CapPrm"], 16) or facts["NoNewPrivs"] != "1":
        raise Unready("privileges were left")
    if facts["Seccomp"] != "2" or facts["Threads"] != "1":
        raise Unready("the filter of system calls is not in force")
    if plan.level == FULL and os.getpid() != 1:
        raise Unready("the process is not the first of its namespace")
    try:
        os.close(os.open("/ade-was-here", os.O_CREAT | os.O_WRONLY))
    except OSError:
        return
    raise Unready("the root can be written to")


def _say_ready(listener):
    """Hand the supervisor the job's folder and the listener, and keep neither."""
    with socket.socket(fileno=os.dup(LINE)) as line:
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        given = [folder] if listener < 0 else [folder, listener]
        socket.send_fds(line, [READY], given)
        for descriptor in given:
            os.close(descriptor)


def _say(words):
    with contextlib.suppress(OSError):  # nobody may be listening any more
        os.write(LINE, json.dumps(words).encode() + b"\n")


def _receive_order():
    """Wait for the order and the files that come with it; None when there is none to come."""
    with socket.socket(fileno=os.dup(LINE)) as line:
        head = _exactly(line, LENGTH.size)
        if head is None:
            return None
        order = json.loads(_exactly(line, LENGTH.unpack(head)[0]))
        names = order["files"]
        for first in range(0, len(names), FILES_AT_ONCE):
            batch = names[first : first + FILES_AT_ONCE]
            _, descriptors, _, _ = socket.recv_fds(line, 1, len(batch))
            for name, descriptor in zip(batch, descriptors, strict=True):
                _copy_in(name, descriptor)
    return order


def _exactly(line, size):
    data = bytearray()
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _copy_in(name, source):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        while os.sendfile(target, source, None, COPY_BYTES):
            pass
    finally:
        os.close(target)
        os.close(source)


def _limit(limits):
    """Bound what the kernel can bound for one process; the supervisor watches the whole tree."""
    os.setpriority(os.PRIO_PROCESS, 0, limits["nice"])
    cpu_seconds = limits["cpu_seconds"]
    # A second before the kernel kills it asks where the code is (`ade_engine.whereabouts`).
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds - 1, cpu_seconds))
    for what, most in (
        (resource.RLIMIT_DATA, limits["data_bytes"] and _data_bytes() + limits["data_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
    ):
        if most:
            resource.setrlimit(what, (most, most))


def _data_bytes():
    """Return how much private memory this process has reserved already."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def _become_another_interpreter(plan, order):
    """Start the environment's own interpreter afresh; the walls stay, the order goes along."""
    with open(".order.json", "w", encoding="utf-8") as file:
        json.dump(order, file)
    script = os.path.join(plan.source, "ade", "sandbox", "inside", "cold.py")
    argv = [plan.interpreter, "-I", "-B", script, plan.source, *plan.paths]
    os.execve(plan.interpreter, argv, os.environ)


def run(order):
    """Run the order's entry; return the exit status."""
    from ade_engine.running import run_entry

    os.set_inheritable(LINE, False)
    linux.set_name("ade-job")
    gc.enable()
    _renew_chance()
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        stream = _stream(descriptor, mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    _say({"begun": True})  # from here on it is the job that speaks
    with os.fdopen(LINE, "w", encoding="utf-8", closefd=False) as stream:
        return run_entry(order["entry"], order["inputs"], stream)


def _stream(descriptor, mode):
    """Return a stream that shows each line at once, and does not fail on odd characters."""
    return open(descriptor, mode, 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _renew_chance():
    """Seed what the zygote's children would otherwise share."""
    import random

    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(int.from_bytes(os.urandom(4), "little"))
    time.tzset()
