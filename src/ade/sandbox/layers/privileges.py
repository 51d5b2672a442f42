"""The user and the capabilities of a process; each function adds the calls to a list."""

from __future__ import annotations

import os
import struct

from ade.sandbox.layers import linux
from ade.sandbox.layers.syscall_list import ANYTHING, SyscallList

CAPABILITY_VERSION_3 = 0x20080522
CAP_LAST = 40
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4


def map_user(calls: SyscallList, inside: int, user: int, group: int, free: int = 4) -> None:
    """Map an ordinary user of a new user namespace to the user and group outside.

    `free` is the first descriptor that is not in use.
    """
    for name, text in (
        ("uid_map", f"{inside} {user} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{inside} {group} 1"),
    ):
        path = f"/proc/self/{name}".encode()
        calls.add("openat", linux.AT_FDCWD, path, os.O_WRONLY, 0, returns=free)
        calls.add("write", free, text.encode(), len(text), returns=len(text))
        calls.add("close", free)


def drop_capabilities(calls: SyscallList) -> None:
    """Drop every capability, and the ways to regain one."""
    for capability in range(CAP_LAST + 1):  # fails only if the kernel does not know it
        calls.add("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0, returns=ANYTHING)
    calls.add("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, returns=ANYTHING)
    calls.add("capset", struct.pack("II", CAPABILITY_VERSION_3, 0), bytes(24))
