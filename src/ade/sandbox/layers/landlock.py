"""Landlock: which files a process and its children may access, whatever their owner and mode.

A right that is handled and that no rule grants is denied. Landlock does not mediate stat, chmod,
chown, or sockets other than TCP; for these there are the mount namespace, the user id and seccomp.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import TYPE_CHECKING

from ade.sandbox.layers import linux

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ade.sandbox.layers.syscall_list import SyscallList

CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
NETWORK_TCP = 3  # bind, connect
SCOPE_SIGNAL_AND_ABSTRACT = 3

READ = READ_FILE | READ_DIR | EXECUTE
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_FILE_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def version() -> int:
    """Return the version of Landlock in this kernel; 0 if it has none."""
    try:
        return linux.call("landlock_create_ruleset", None, 0, CREATE_RULESET_VERSION)
    except OSError:
        return 0


def file_rights(of_version: int) -> int:
    """Return all file rights that a version of Landlock knows."""
    return (1 << _FILE_RIGHTS_BY_VERSION[min(max(of_version, 1), 5)]) - 1


def add_calls(
    calls: SyscallList,
    readable: Iterable[str],
    writable: Iterable[str],
    *,
    network: bool,
    of_version: int,
    listable: Iterable[str] = (),
    free: int = 4,
) -> None:
    """Add the calls that restrict a process to reading below some paths and writing below others.

    Below `listable` it may list folders and read no file; elsewhere it may do nothing. A path that
    does not exist grants nothing. `free` is the first descriptor that is not in use.
    """
    every = file_rights(of_version)
    fields = [every]
    if of_version >= 4:
        fields.append(0 if network else NETWORK_TCP)
    if of_version >= 6:
        fields.append(SCOPE_SIGNAL_AND_ABSTRACT)
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    calls.add("landlock_create_ruleset", attributes, len(attributes), 0, returns=free)
    for paths, rights in ((readable, READ), (listable, READ_DIR), (writable, every)):
        for path in paths:
            _grant(calls, path, rights, free)
    calls.add("landlock_restrict_self", free, 0)
    calls.add("close", free)


def _grant(calls: SyscallList, path: str, rights: int, ruleset: int) -> None:
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return
    beneath = ruleset + 1
    flags = os.O_PATH | os.O_CLOEXEC
    rule = struct.pack("=Qi", rights if is_folder else rights & _OF_FILES, beneath)
    calls.add("openat", linux.AT_FDCWD, os.fsencode(path), flags, 0, returns=beneath)
    calls.add("landlock_add_rule", ruleset, RULE_PATH_BENEATH, rule, 0)
    calls.add("close", beneath)
