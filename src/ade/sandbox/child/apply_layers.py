"""The way of a child from its fork to its order, as a list of system calls.

In order: namespaces, descriptors, who it is, mounts, limits, privileges, files, calls; then a look
at what stands. "Ready" is said when the interpreter is awake again and has seen that all of it is.
"""

import ctypes
import errno
import os
import resource
import signal
import socket
import struct

from ade.sandbox.child.plan import FULL, INSIDE_USER, JOB_FOLDER
from ade.sandbox.layers import landlock, linux, privileges, root_filesystem, seccomp
from ade.sandbox.layers.syscall_list import FAILURE, NO_FAILURE, SyscallList

LINE = 3
FREE = 4  # the first descriptor that nobody uses, once all others are closed
READY = b"R"
LENGTH = struct.Struct("=I")
STATUS_BYTES_MAX = 4096
ALREADY_THERE = (-errno.EEXIST, 0)
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
MUST_SAY = (b"CapEff:\t0000000000000000\n", b"CapPrm:\t0000000000000000\n", b"NoNewPrivs:\t1\n",
            b"Seccomp:\t2\n", b"Threads:\t1\n")  # fmt: skip


class LayerMissing(Exception):
    """A layer that was put up does not stand."""


class LayerSetup:
    """Hold the list for one level and folder; `given` counts the descriptors that come along."""

    def __init__(self, plan, policy_filter, folder, given):
        self._plan = plan
        self._full = plan.level == FULL
        self._status = ctypes.create_string_buffer(STATUS_BYTES_MAX)
        self._sizes = ctypes.create_string_buffer(STATUS_BYTES_MAX)
        self._calls = SyscallList()
        if self._full:
            self._calls.add_fork(_namespaces(plan))
        self._take_descriptors(given)
        if self._full:
            self._enter()
        self._calls.add("chdir", os.fsencode(folder))
        self._limit()
        self._give_up(folder)
        self._shown = [FREE]
        here = os.O_RDONLY | os.O_DIRECTORY
        self._calls.add("openat", linux.AT_FDCWD, b".", here, 0, returns=FREE)
        if "seccomp" not in plan.without:
            self._restrict_calls(policy_filter)
        if not plan.without:
            self._look()
        self._read(b"/proc/self/statm", self._sizes)
        self._calls.write()
        self._ready = _ready(self._shown)

    def fork(self, descriptors):
        """Fork a child that makes the list; return (pid, pidfd), and (0, -1) to the child."""
        self._give(descriptors)
        pid, pidfd, self._made = self._calls.fork()
        return pid, pidfd

    def make(self, descriptors):
        """Make the list in a process that was forked already."""
        self._give(descriptors)
        self._made = self._calls.make()

    def say_ready(self):
        """Look whether all was made and stands, and say so."""
        if self._made < len(self._calls):
            raise self._calls.failure(self._made)
        if not self._plan.without:
            self._check()
        self._ready.make_all()

    def data_bytes(self):
        """Return how much private memory the process had reserved when its layers stood."""
        return int(self._sizes.value.split()[5]) * resource.getpagesize()

    # --- in the order in which it is made --------------------------------------------------------

    def _take_descriptors(self, given):
        """Keep four descriptors: nothing to read, two to write, the line.

        None of them is the zygote's own: what two processes hold open in common has flags, which
        one could set and the other read.
        """
        add = self._calls.add
        add("setsid", returns=NO_FAILURE)
        add("prctl", linux.PR_SET_NAME, b"ade-ready", 0, 0, 0)
        add("prctl", linux.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        stdout, stderr, line, *groups = range(given)
        self._given = {entrance: add("write", 0, b"0", 1, returns=1) for entrance in groups}
        for number in (stdout, stderr, line):
            self._given[number] = add("dup3", 0, number + 1, 0, returns=number + 1)
        add("close_range", FREE, 0xFFFFFFFF, 0)
        add("openat", linux.AT_FDCWD, b"/dev/null", os.O_RDONLY, 0, returns=FREE)
        add("dup3", FREE, 0, 0)
        add("close", FREE)

    def _give(self, descriptors):
        for number, descriptor in enumerate(descriptors):
            self._calls.set_first(self._given[number], descriptor)

    def _enter(self):
        """Be somebody in the new user namespace, and mount what is this job's alone."""
        plan, add = self._plan, self._calls.add
        if "user" not in plan.without:
            outside = plan.user if plan.by_root else INSIDE_USER
            privileges.map_user(self._calls, INSIDE_USER, outside, outside)
        if "mount" in plan.without:
            return
        # An environment below /tmp must still be seen when a job has a /tmp of its own.
        readable = root_filesystem.readable_paths(plan.readable, plan.network)
        hidden = [os.fsencode(path) for path in readable if path.startswith(OWN_PLACES)]
        copied = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | linux.AT_RECURSIVE
        for tree, path in enumerate(hidden, FREE):
            add("open_tree", linux.AT_FDCWD, path, copied, returns=tree)
        for place, megabytes, mode in (
            (JOB_FOLDER, plan.job_mb, "700"),
            ("/tmp", plan.tmp_mb, "1777"),
            ("/dev/shm", plan.shared_mb, "1777"),
        ):
            size = f"size={megabytes}m,nr_inodes={plan.inodes},mode={mode}".encode()
            flags = linux.MS_NOSUID | linux.MS_NODEV
            add("mount", b"tmpfs", place.encode(), b"tmpfs", flags, size)
        for tree, path in enumerate(hidden, FREE):
            for end in [i for i, byte in enumerate(path) if byte == ord("/") and i] + [len(path)]:
                add("mkdirat", linux.AT_FDCWD, path[:end], 0o755, returns=ALREADY_THERE)
            there = (linux.AT_FDCWD, path, linux.MOVE_MOUNT_F_EMPTY_PATH)
            add("move_mount", tree, b"", *there)
        if hidden:
            add("close_range", FREE, 0xFFFFFFFF, 0)
        if "pid" not in plan.without:
            add("mount", b"proc", b"/proc", b"proc", root_filesystem.PROC_FLAGS, b"subset=pid")

    def _limit(self):
        plan = self._plan
        if "limits" in plan.without:
            return
        # Without a user namespace the count is of a user, and the worker's own has other processes.
        counts_alone = self._full or plan.user != -1
        for what, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, plan.open_files),
            (resource.RLIMIT_NPROC, plan.processes if counts_alone else None),
            (resource.RLIMIT_MSGQUEUE, 0),
        ):
            if most is not None:
                self._calls.add("prlimit64", 0, what, struct.pack("QQ", most, most), None)

    def _give_up(self, folder):
        """Give up every privilege, and every file that is not needed."""
        plan = self._plan
        if "capabilities" not in plan.without:
            privileges.drop_capabilities(self._calls)
        self._calls.add("prctl", linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if not plan.landlock or "landlock" in plan.without:
            return
        writable, listable = [folder, "/dev/null"], []
        if self._full:
            readable = ["/"]
            writable += ["/tmp", "/dev/shm"]
        else:
            # Not the whole folder: what the machine's network does stands there, too.
            own = f"/proc/{os.getpid()}"
            readable = [
                *root_filesystem.readable_paths(plan.readable, plan.network),
                *root_filesystem.DEVICES,
            ]
            readable += [f"{own}/{name}" for name in OWN_FACTS]
            listable = [f"{own}/task"]
        landlock.add_calls(
            self._calls,
            readable,
            writable,
            network=plan.network,
            of_version=plan.landlock,
            listable=listable,
        )

    def _restrict_calls(self, policy_filter):
        """Put up the filter; somebody shall hear of what it refuses."""
        without = self._plan.without
        pid = 1 if self._full and "pid" not in without else os.getpid()
        listener = None if "notify" in without else FREE + 1
        seccomp.add_calls(self._calls, policy_filter, pid=pid, listener=listener)
        if listener is not None:
            self._shown.append(listener)

    def _look(self):
        """Look at the layers from inside, through the kernel's eyes."""
        if self._full:
            self._calls.add("getpid", returns=1)
        create = os.O_CREAT | os.O_WRONLY
        self._calls.add("openat", linux.AT_FDCWD, b"/ade-was-here", create, 0o600, returns=FAILURE)
        self._read(b"/proc/self/status", self._status)

    def _check(self):
        said = self._status.value
        for fact in MUST_SAY:
            if fact not in said:
                raise LayerMissing(f"it does not say {fact.decode().strip()!r} of itself")

    def _read(self, path, into):
        free = self._shown[-1] + 1
        self._calls.add("openat", linux.AT_FDCWD, path, os.O_RDONLY, 0, returns=free)
        self._calls.add("read", free, into, len(into) - 1, returns=NO_FAILURE)
        self._calls.add("close", free)


def _ready(shown):
    """Hand the supervisor the job's folder and the listener, and keep neither."""
    calls = SyscallList()
    calls.add("sendmsg", LINE, _message_with(READY, shown), 0, returns=len(READY))
    calls.add("close_range", FREE, 0xFFFFFFFF, 0)
    calls.write()
    return calls


def _namespaces(plan):
    flags = 0
    for name, flag in NAMESPACES.items():
        if name not in plan.without and not (name == "net" and plan.network):
            flags |= flag
    return flags


class _Piece(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("pieces", ctypes.POINTER(_Piece)),
        ("pieces_count", ctypes.c_size_t),
        ("control", ctypes.c_char_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


def _message_with(data, descriptors):
    """Return a message of some bytes and some descriptors, as sendmsg takes it."""
    numbers = struct.pack(f"{len(descriptors)}i", *descriptors)
    kind = (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    control = struct.pack("Nii", socket.CMSG_LEN(len(numbers)), *kind) + numbers
    control = control.ljust(socket.CMSG_SPACE(len(numbers)), b"\0")
    piece = _Piece(data, len(data))
    return _Message(None, 0, ctypes.pointer(piece), 1, control, len(control), 0)
