"""Check the descriptors that a child sends: the folder that it works in, and its seccomp listener.

What runs in a child may be a package that took over its zygote, so a descriptor may be anything
that the child can open, or was ever sent. The server reads the folder with its own rights: were it
another tenant's, its files would become outputs of this job.

At level `landlock` the server makes the folder and opens it before the request, and believes no
descriptor. At level `full` it is a tmpfs that the child mounts, in a namespace that the server is
not in and, in most containers, may not enter (that would need CAP_SYS_PTRACE). There the child
sends a descriptor, and the kernel must say that it is the root of an empty tmpfs of the size that
the plan asks for, and that it is mounted as the job's folder in the child's mount namespace. No
mount is in two namespaces, so it is none of the server's.
"""

import ctypes
import os
import stat

from ade.domain.units import MIB
from ade.sandbox.child.plan import JOB_FOLDER, ZygotePlan
from ade.sandbox.layers import linux
from ade.sandbox.usage import read_facts

TMPFS = 0x01021994
LISTENER = "anon_inode:seccomp notify"


class WrongDescriptor(Exception):
    """A child sent a descriptor that is not what it should be."""


class _FileSystem(ctypes.Structure):
    """The beginning of `struct statfs`, which is the same on x86-64 and aarch64."""

    _fields_ = [
        ("type", ctypes.c_long),
        ("block_bytes", ctypes.c_long),
        ("blocks", ctypes.c_uint64),
        ("blocks_free", ctypes.c_uint64),
        ("blocks_available", ctypes.c_uint64),
        ("files", ctypes.c_uint64),
        ("files_free", ctypes.c_uint64),
        ("rest", ctypes.c_byte * 256),
    ]


def check_listener(descriptor: int) -> None:
    """Raise WrongDescriptor unless this is a seccomp listener: only ioctls of one are made."""
    if os.readlink(f"/proc/self/fd/{descriptor}") != LISTENER:
        raise WrongDescriptor("the child's listener is not one of seccomp")


def check_folder(descriptor: int, pid: int, plan: ZygotePlan) -> None:
    """Raise WrongDescriptor unless this is the job's folder of a child of this plan.

    The child has run no code of a job yet, so its folder is empty: whatever else a descriptor may
    lead to, there is nothing in it that could be collected.
    """
    facts = os.fstat(descriptor)
    if not stat.S_ISDIR(facts.st_mode):
        raise WrongDescriptor("the child's folder is not a folder")
    held = _FileSystem()
    linux.call("fstatfs", descriptor, ctypes.byref(held))
    if held.type != TMPFS:
        raise WrongDescriptor("the child's folder is not on a tmpfs")
    size = (held.blocks * held.block_bytes, held.files, held.files - held.files_free)
    if size != (plan.job_mb * MIB, plan.inodes, 1):
        raise WrongDescriptor("the child's folder is not empty, or of another size")
    device = f"{os.major(facts.st_dev)}:{os.minor(facts.st_dev)}".encode()
    if _place_of(_mount_of(descriptor), pid) != [device, b"/", JOB_FOLDER.encode()]:
        raise WrongDescriptor("the child's folder is not mounted as its job's folder")


def _mount_of(descriptor: int) -> bytes:
    """Return the number of the mount that a descriptor was opened through."""
    _, _, behind = read_facts(f"/proc/self/fdinfo/{descriptor}").partition(b"mnt_id:")
    return behind.split(b"\n", 1)[0].strip()


def _place_of(mount: bytes, pid: int) -> list[bytes]:
    """Return [device, root, mount point] of a mount that a process sees; nothing if there is none.

    The mounts are searched from the last, because a child mounts its folder last.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", "rb", buffering=0) as file:
            text = b"\n" + (file.readall() or b"")
    except OSError as error:
        raise WrongDescriptor(f"the mounts of {pid} cannot be read: {error.strerror}") from None
    found = text.rfind(b"\n" + mount + b" ")
    return text[found + 1 :].split(b" ", 5)[2:5] if found >= 0 else []
