"""System calls that Python does not offer.

Each function is a thin wrapper: it calls by number where the C library has no function, and raises
an OSError that names the call when it fails.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from typing import TYPE_CHECKING

from ade.sandbox.layers.syscall_numbers import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MACHINE = platform.machine()
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_PIDFD = 0x00001000
CLONE_PARENT = 0x00008000
SIGCHLD = 17

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_REC, MS_PRIVATE = 16384, 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
MOVE_MOUNT_F_EMPTY_PATH = 4

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_NO_NEW_PRIVS = 38

RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 1, 2, 4, 8

_COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE)

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# Calls through CDLL release the interpreter's lock; a call that may be a fork must not.
_keeping_the_lock = ctypes.PyDLL(None, use_errno=True)
_keeping_the_lock.syscall.restype = ctypes.c_long
libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
libc.unshare.argtypes = [ctypes.c_int]
libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
libc.sethostname.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def is_known_machine() -> bool:
    """Tell whether the system call numbers of this machine are known."""
    return _COLUMN is not None


def call(name: str, *arguments: Any) -> int:
    """Make a system call by its name."""
    words = (
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    )
    return _checked(name, libc.syscall(ctypes.c_long(number_of(name)), *words))


def number_of(name: str) -> int:
    """Return the number of a system call on this machine."""
    number = NUMBERS[name][_COLUMN] if _COLUMN is not None else None
    if number is None:
        raise OSError(errno.ENOSYS, f"{name} is not known on {MACHINE}")
    return number


def raw_call(number: int, words: Iterable[int]) -> int:
    """Make a system call without releasing the interpreter's lock, because it may be a fork."""
    ctypes.set_errno(0)
    returned = _keeping_the_lock.syscall(ctypes.c_long(number), *(ctypes.c_ulong(w) for w in words))
    return int(returned) if returned != -1 else -ctypes.get_errno()


def _checked(name: str, returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return returned


def mount(
    source: str | None, target: str, kind: str | None, flags: int = 0, data: str = ""
) -> None:
    """Mount a file system, or change how one is mounted."""
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _checked(f"mount {target}", libc.mount(*words, flags, data.encode()))


def detach(path: str) -> None:
    """Unmount a path, and all mounts below it, lazily."""
    _checked(f"umount {path}", libc.umount2(path.encode(), MNT_DETACH))


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _checked("unshare", libc.unshare(flags))


def prctl(option: int, *arguments: int) -> int:
    """Call prctl."""
    words = list(arguments) + [0] * (4 - len(arguments))
    return _checked(f"prctl {option}", libc.prctl(option, *words))


def set_name(name: str) -> None:
    """Set the name that `ps` shows for this process."""
    text = ctypes.create_string_buffer(name.encode())
    prctl(PR_SET_NAME, ctypes.addressof(text))


def set_hostname(name: str) -> None:
    """Set the host name of this UTS namespace."""
    _checked("sethostname", libc.sethostname(name.encode(), len(name)))


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def clone_tree(path: str) -> int:
    """Return a descriptor of a detached copy of the mounts at a path."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    return call("open_tree", AT_FDCWD, ctypes.c_char_p(path.encode()), flags)


def restrict_tree(tree: int, attributes: int) -> None:
    """Set attributes on every mount of a copied tree, recursively."""
    change = _MountAttributes(attributes, 0, 0, 0)
    size = ctypes.sizeof(change)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    call("mount_setattr", tree, ctypes.c_char_p(b""), flags, ctypes.byref(change), size)


def place_tree(tree: int, target: str) -> None:
    """Attach a copied tree of mounts at a path."""
    empty, there = ctypes.c_char_p(b""), ctypes.c_char_p(target.encode())
    call("move_mount", tree, empty, AT_FDCWD, there, MOVE_MOUNT_F_EMPTY_PATH)


def pivot_root_to(folder: str) -> None:
    """Make a folder the root, and unmount the old root."""
    os.chdir(folder)
    call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    detach(".")
    os.chdir("/")


def protect(address: int, size: int, how: int) -> None:
    """Change the protection of memory (mprotect)."""
    words = ctypes.c_void_p(address), ctypes.c_size_t(size)
    _checked("mprotect", libc.mprotect(*words, how))


def close_from(lowest: int) -> None:
    """Close every descriptor from a number on."""
    call("close_range", lowest, 0xFFFFFFFF, 0)


class _OpenHow(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


def open_beneath(folder: int, path: str, flags: int) -> int:
    """Open a path below a folder without following a link or leaving its file system."""
    how = _OpenHow(
        flags | os.O_NOFOLLOW | os.O_CLOEXEC,
        0,
        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    )
    name = ctypes.c_char_p(os.fsencode(path))
    return call("openat2", folder, name, ctypes.byref(how), ctypes.sizeof(how))
