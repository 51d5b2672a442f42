"""Apply the layers of a child, as a list of system calls that begins with its fork.

In order: namespaces, descriptors, user mapping, mounts, limits, capabilities, Landlock, seccomp,
and then reading back what holds. The child reports that it is ready after its interpreter has seen
that every call succeeded and that the kernel confirms the layers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import socket
import struct
from typing import TYPE_CHECKING

from ade.sandbox.child.plan import FULL, INSIDE_USER, JOB_FOLDER
from ade.sandbox.layers import landlock, linux, privileges, root_filesystem, seccomp
from ade.sandbox.layers.syscall_list import FAILURE, NO_FAILURE, SyscallList

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ade.sandbox.child.plan import ZygotePlan

LINE = 3
FREE = 4  # the first unused descriptor, once all others are closed
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
STATUS_LINES = (b"CapEff:\t0000000000000000\n", b"CapPrm:\t0000000000000000\n", b"NoNewPrivs:\t1\n",
            b"Seccomp:\t2\n", b"Threads:\t1\n")  # fmt: skip


class LayerMissing(Exception):
    """The kernel does not confirm a layer that was applied."""


class LayerSetup:
    """Hold the calls for one folder and number of descriptors that come with the request."""

    def __init__(self, plan: ZygotePlan, policy_filter: bytes, folder: str, count: int) -> None:
        self._plan = plan
        self._full = plan.level == FULL
        self._status = ctypes.create_string_buffer(STATUS_BYTES_MAX)
        self._sizes = ctypes.create_string_buffer(STATUS_BYTES_MAX)
        self._calls = SyscallList()
        if self._full:
            self._calls.add_fork(_namespaces(plan))
        self._take_descriptors(count)
        if self._full:
            self._enter_namespaces()
        self._calls.add("chdir", os.fsencode(folder))
        self._set_limits()
        self._drop_rights(folder)
        self._sent = [FREE]
        here = os.O_RDONLY | os.O_DIRECTORY
        self._calls.add("openat", linux.AT_FDCWD, b".", here, 0, returns=FREE)
        if "seccomp" not in plan.without:
            self._restrict_calls(policy_filter)
        if not plan.without:
            self._read_back()
        self._read(b"/proc/self/statm", self._sizes)
        self._calls.prepare()
        self._done = 0
        self._ready = _ready(self._sent)

    def fork(self, descriptors: Sequence[int]) -> tuple[int, int]:
        """Fork a child that executes the list; return (pid, pidfd), and (0, -1) to the child."""
        self._insert(descriptors)
        pid, pidfd, self._done = self._calls.fork()
        return pid, pidfd

    def apply(self, descriptors: Sequence[int]) -> None:
        """Execute the list in a process that was forked already."""
        self._insert(descriptors)
        self._done = self._calls.execute()

    def report_ready(self) -> None:
        """Check that every layer was applied and holds, and tell the supervisor."""
        if self._done < len(self._calls):
            raise self._calls.failure(self._done)
        if not self._plan.without:
            self._check()
        self._ready.execute_all()

    def data_bytes(self) -> int:
        """Return how much private memory the process had reserved when the layers were applied."""
        return int(self._sizes.value.split()[5]) * resource.getpagesize()

    # --- in the order in which the calls are made ------------------------------------------------

    def _take_descriptors(self, count: int) -> None:
        """Keep four descriptors: /dev/null to read, stdout, stderr and the line.

        None of them is the zygote's own: processes that share an open file share its flags, which
        one could set and another read.
        """
        add = self._calls.add
        add("setsid", returns=NO_FAILURE)
        add("prctl", linux.PR_SET_NAME, b"ade-ready", 0, 0, 0)
        add("prctl", linux.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        stdout, stderr, line, *groups = range(count)
        # A process joins a cgroup by writing 0 to its file.
        self._index_of = {group: add("write", 0, b"0", 1, returns=1) for group in groups}
        for number in (stdout, stderr, line):
            self._index_of[number] = add("dup3", 0, number + 1, 0, returns=number + 1)
        add("close_range", FREE, 0xFFFFFFFF, 0)
        add("openat", linux.AT_FDCWD, b"/dev/null", os.O_RDONLY, 0, returns=FREE)
        add("dup3", FREE, 0, 0)
        add("close", FREE)

    def _insert(self, descriptors: Sequence[int]) -> None:
        """Put the descriptors of one request into the calls that use them."""
        for number, descriptor in enumerate(descriptors):
            self._calls.set_first(self._index_of[number], descriptor)

    def _enter_namespaces(self) -> None:
        """Map the user of the new user namespace, and mount the job's private folders."""
        plan, add = self._plan, self._calls.add
        if "user" not in plan.without:
            outside = plan.user if plan.by_root else INSIDE_USER
            privileges.map_user(self._calls, INSIDE_USER, outside, outside)
        if "mount" in plan.without:
            return
        # An environment below /tmp must stay visible when the job gets a private /tmp.
        readable = root_filesystem.readable_paths(plan.readable, plan.network)
        hidden = [os.fsencode(path) for path in readable if path.startswith(OWN_PLACES)]
        copied = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | linux.AT_RECURSIVE
        for tree, path in enumerate(hidden, FREE):
            add("open_tree", linux.AT_FDCWD, path, copied, returns=tree)
        for folder, megabytes, mode in (
            (JOB_FOLDER, plan.job_mb, "700"),
            ("/tmp", plan.tmp_mb, "1777"),
            ("/dev/shm", plan.shared_mb, "1777"),
        ):
            size = f"size={megabytes}m,nr_inodes={plan.inodes},mode={mode}".encode()
            flags = linux.MS_NOSUID | linux.MS_NODEV
            add("mount", b"tmpfs", folder.encode(), b"tmpfs", flags, size)
        for tree, path in enumerate(hidden, FREE):
            for end in [i for i, byte in enumerate(path) if byte == ord("/") and i] + [len(path)]:
                add("mkdirat", linux.AT_FDCWD, path[:end], 0o755, returns=ALREADY_THERE)
            there = (linux.AT_FDCWD, path, linux.MOVE_MOUNT_F_EMPTY_PATH)
            add("move_mount", tree, b"", *there)
        if hidden:
            add("close_range", FREE, 0xFFFFFFFF, 0)
        if "pid" not in plan.without:
            add("mount", b"proc", b"/proc", b"proc", root_filesystem.PROC_FLAGS, b"subset=pid")

    def _set_limits(self) -> None:
        plan = self._plan
        if "limits" in plan.without:
            return
        # Without a user namespace the kernel counts all processes of the user, and the worker's
        # own user has others.
        counts_alone = self._full or plan.user != -1
        for what, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, plan.open_files),
            (resource.RLIMIT_NPROC, plan.processes if counts_alone else None),
            (resource.RLIMIT_MSGQUEUE, 0),
        ):
            if most is not None:
                self._calls.add("prlimit64", 0, what, struct.pack("QQ", most, most), None)

    def _drop_rights(self, folder: str) -> None:
        """Drop every capability, and access to every file that is not needed."""
        plan = self._plan
        if "capabilities" not in plan.without:
            privileges.drop_capabilities(self._calls)
        self._calls.add("prctl", linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if not plan.landlock or "landlock" in plan.without:
            return
        writable = [folder, "/dev/null"]
        listable: list[str] = []
        if self._full:
            readable = ["/"]
            writable += ["/tmp", "/dev/shm"]
        else:
            # Not the whole of /proc/PID: it also shows the machine's network.
            own = f"/proc/{os.getpid()}"
            readable = [
                *root_filesystem.readable_paths(plan.readable, plan.network),
                *root_filesystem.devices(memory_group=plan.memory_group),
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

    def _restrict_calls(self, policy_filter: bytes) -> None:
        """Install the seccomp filter, with a listener for the calls that it denies."""
        without = self._plan.without
        pid = 1 if self._full and "pid" not in without else os.getpid()
        listener = None if "notify" in without else FREE + 1
        seccomp.add_calls(self._calls, policy_filter, pid=pid, listener=listener)
        if listener is not None:
            self._sent.append(listener)

    def _read_back(self) -> None:
        """Test the layers, and read what the kernel says of this process."""
        if self._full:
            self._calls.add("getpid", returns=1)
        create = os.O_CREAT | os.O_WRONLY
        self._calls.add("openat", linux.AT_FDCWD, b"/ade-was-here", create, 0o600, returns=FAILURE)
        self._read(b"/proc/self/status", self._status)

    def _check(self) -> None:
        status = self._status.value
        for line in STATUS_LINES:
            if line not in status:
                raise LayerMissing(f"/proc/self/status lacks {line.decode().strip()!r}")

    def _read(self, path: bytes, into: ctypes.Array[ctypes.c_char]) -> None:
        free = self._sent[-1] + 1
        self._calls.add("openat", linux.AT_FDCWD, path, os.O_RDONLY, 0, returns=free)
        self._calls.add("read", free, into, len(into) - 1, returns=NO_FAILURE)
        self._calls.add("close", free)


def _ready(descriptors: Sequence[int]) -> SyscallList:
    """Return the calls that pass the job's folder and the listener on, and keep neither."""
    calls = SyscallList()
    calls.add("sendmsg", LINE, _message_with(READY, descriptors), 0, returns=len(READY))
    calls.add("close_range", FREE, 0xFFFFFFFF, 0)
    calls.prepare()
    return calls


def _namespaces(plan: ZygotePlan) -> int:
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


def _message_with(data: bytes, descriptors: Sequence[int]) -> Any:
    """Return a message of bytes and descriptors, as sendmsg takes it."""
    numbers = struct.pack(f"{len(descriptors)}i", *descriptors)
    kind = (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    control = struct.pack("Nii", socket.CMSG_LEN(len(numbers)), *kind) + numbers
    control = control.ljust(socket.CMSG_SPACE(len(numbers)), b"\0")
    piece = _Piece(data, len(data))
    return _Message(None, 0, ctypes.pointer(piece), 1, control, len(control), 0)
