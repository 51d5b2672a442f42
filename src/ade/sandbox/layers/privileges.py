"""Who a process is, and what it may no longer do; each function writes down the calls for it."""

import os
import struct

from ade.sandbox.layers import linux
from ade.sandbox.layers.syscall_list import ANYTHING

CAPABILITY_VERSION_3 = 0x20080522
CAP_LAST = 40
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4


def map_user(calls, inside, user, group, free=4):
    """Be an ordinary user in a new user namespace, whoever this is outside."""
    for name, text in (
        ("uid_map", f"{inside} {user} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{inside} {group} 1"),
    ):
        path = f"/proc/self/{name}".encode()
        calls.add("openat", linux.AT_FDCWD, path, os.O_WRONLY, 0, returns=free)
        calls.add("write", free, text.encode(), len(text), returns=len(text))
        calls.add("close", free)


def drop_capabilities(calls):
    """Give up every capability, and the way to get one back."""
    for capability in range(CAP_LAST + 1):  # fails only where there was none to drop
        calls.add("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0, returns=ANYTHING)
    calls.add("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, returns=ANYTHING)
    calls.add("capset", struct.pack("II", CAPABILITY_VERSION_3, 0), bytes(24))
