"""Landlock: which files a process and its children may touch, whatever their owner and mode say.

Handled rights that no rule grants are denied. What Landlock does not see (stat, chmod, chown, and
sockets other than TCP) is left to the mount namespace, the user's number and seccomp.
"""

import os
import stat
import struct

from ade.sandbox.layers import linux

CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
NETWORK_TCP = 3  # bind, connect
SCOPE_SIGNAL_AND_ABSTRACT = 3

LOOK = READ_FILE | READ_DIR | EXECUTE
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_FILE_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def version():
    """Return the version of Landlock in this kernel; 0 is none."""
    try:
        return linux.call("landlock_create_ruleset", None, 0, CREATE_RULESET_VERSION)
    except OSError:
        return 0


def file_rights(of_version):
    """Return every right over files that this version knows."""
    return (1 << _FILE_RIGHTS_BY_VERSION[min(max(of_version, 1), 5)]) - 1


def add_calls(calls, readable, writable, *, network, of_version, listable=(), free=4):
    """Write down the calls that let a process read below some paths and do anything below others.

    Below `listable` it may see names and read nothing; elsewhere it may do nothing. A path that
    does not exist grants nothing. `free` is the first descriptor that nobody uses.
    """
    every = file_rights(of_version)
    fields = [every]
    if of_version >= 4:
        fields.append(0 if network else NETWORK_TCP)
    if of_version >= 6:
        fields.append(SCOPE_SIGNAL_AND_ABSTRACT)
    asked = struct.pack(f"{len(fields)}Q", *fields)
    calls.add("landlock_create_ruleset", asked, len(asked), 0, returns=free)
    for paths, rights in ((readable, LOOK), (listable, READ_DIR), (writable, every)):
        for path in paths:
            _grant(calls, path, rights, free)
    calls.add("landlock_restrict_self", free, 0)
    calls.add("close", free)


def _grant(calls, path, rights, ruleset):
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
