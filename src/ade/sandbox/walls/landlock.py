"""Landlock: which files a process and its children may touch, whatever their owner and mode say.

Handled rights that no rule grants are denied. What Landlock does not see (stat, chmod, chown, and
sockets other than TCP) is left to the mount namespace, the user's number and seccomp.
"""

import ctypes
import os
import stat
import struct

from ade.sandbox.walls import linux

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


def put_up(readable, writable, *, network, of_version, listable=()):
    """Let this process read below some paths, do anything below others, and nothing elsewhere.

    Below `listable` it may see names and read nothing.

    A path that does not exist grants nothing.
    """
    every = file_rights(of_version)
    fields = [every]
    if of_version >= 4:
        fields.append(0 if network else NETWORK_TCP)
    if of_version >= 6:
        fields.append(SCOPE_SIGNAL_AND_ABSTRACT)
    asked = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = linux.call("landlock_create_ruleset", ctypes.c_char_p(asked), len(asked), 0)
    try:
        for path in readable:
            _grant(ruleset, path, LOOK)
        for path in listable:
            _grant(ruleset, path, READ_DIR)
        for path in writable:
            _grant(ruleset, path, every)
        linux.call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _grant(ruleset, path, rights):
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, beneath)
        linux.call("landlock_add_rule", ruleset, RULE_PATH_BENEATH, ctypes.c_char_p(rule), 0)
    finally:
        os.close(beneath)
