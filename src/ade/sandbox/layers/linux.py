"""The system calls that Python does not offer, each by its name.

Everything here is a thin line over the kernel: numbers where the C library has no wrapper, and an
OSError with the call's name where it fails.
"""

import ctypes
import errno
import os
import platform

from ade.sandbox.layers.syscall_numbers import NUMBERS

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
# A fork must not let go of the interpreter's lock on the way, as calls through CDLL do.
_keeping_the_lock = ctypes.PyDLL(None, use_errno=True)
_keeping_the_lock.syscall.restype = ctypes.c_long
libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
libc.unshare.argtypes = [ctypes.c_int]
libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
libc.sethostname.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def is_known_machine() -> bool:
    """Tell whether this processor's numbers are known here."""
    return _COLUMN is not None


def call(name, *arguments):
    """Make a system call by its name."""
    words = (
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    )
    return _checked(name, libc.syscall(ctypes.c_long(number_of(name)), *words))


def number_of(name):
    """Return the number of a system call on this machine."""
    number = NUMBERS[name][_COLUMN] if _COLUMN is not None else None
    if number is None:
        raise OSError(errno.ENOSYS, f"{name} is not known on {MACHINE}")
    return number


def raw_call(number, words):
    """Make a system call without letting go of the interpreter's lock: it may be a fork."""
    ctypes.set_errno(0)
    returned = _keeping_the_lock.syscall(ctypes.c_long(number), *(ctypes.c_ulong(w) for w in words))
    return returned if returned != -1 else -ctypes.get_errno()


def _checked(name, returned):
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return returned


def mount(source, target, kind, flags=0, data=""):
    """Mount a file system, or change how one is mounted."""
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    _checked(f"mount {target}", libc.mount(*words, flags, data.encode()))


def detach(path):
    """Take a mount, and all below it, out of sight."""
    _checked(f"umount {path}", libc.umount2(path.encode(), MNT_DETACH))


def unshare(flags):
    """Leave namespaces for new ones."""
    _checked("unshare", libc.unshare(flags))


def prctl(option, *arguments):
    """Change something about this process."""
    words = list(arguments) + [0] * (4 - len(arguments))
    return _checked(f"prctl {option}", libc.prctl(option, *words))


def set_name(name):
    """Name this process for those who look at the list of processes."""
    text = ctypes.create_string_buffer(name.encode())
    prctl(PR_SET_NAME, ctypes.addressof(text))


def set_hostname(name):
    """Name the host of this namespace."""
    _checked("sethostname", libc.sethostname(name.encode(), len(name)))


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def clone_tree(path):
    """Take a copy of the mounts at a path, to be put elsewhere."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    return call("open_tree", AT_FDCWD, ctypes.c_char_p(path.encode()), flags)


def restrict_tree(tree, attributes):
    """Add attributes to every mount of a copied tree, the ones below the first included."""
    change = _MountAttributes(attributes, 0, 0, 0)
    size = ctypes.sizeof(change)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    call("mount_setattr", tree, ctypes.c_char_p(b""), flags, ctypes.byref(change), size)


def place_tree(tree, target):
    """Put a copied tree of mounts at a path."""
    empty, there = ctypes.c_char_p(b""), ctypes.c_char_p(target.encode())
    call("move_mount", tree, empty, AT_FDCWD, there, MOVE_MOUNT_F_EMPTY_PATH)


def pivot_root_to(folder):
    """Make a folder the root, and let the old one go."""
    os.chdir(folder)
    call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    detach(".")
    os.chdir("/")


def protect(address, size, how):
    """Say what memory may be used for."""
    words = ctypes.c_void_p(address), ctypes.c_size_t(size)
    _checked("mprotect", libc.mprotect(*words, how))


def close_from(lowest):
    """Close every descriptor from a number on."""
    call("close_range", lowest, 0xFFFFFFFF, 0)


class _OpenHow(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


def open_beneath(folder, path, flags):
    """Open a path below a folder without following any link or leaving its file system."""
    how = _OpenHow(
        flags | os.O_NOFOLLOW | os.O_CLOEXEC,
        0,
        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    )
    name = ctypes.c_char_p(os.fsencode(path))
    return call("openat2", folder, name, ctypes.byref(how), ctypes.sizeof(how))
