"""The files of a job that have no name: deleted ones that it still has open or mapped.

They take space on the disk and are in no folder. This is for jobs of one process (level
`landlock`); at level `full` a job's files are in a tmpfs, whose size the kernel enforces.

What can be seen depends on who looks. A file that is open is seen in any case. A mapped file whose
descriptor was closed is seen, and its size only with CAP_SYS_ADMIN; a descriptor that waits in a
socket is only counted. Where the size is unknown, it is taken to be the largest that a file may
have.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ade.sandbox.layers import linux
from ade.sandbox.usage import has_memory, read_all

DELETED = " (deleted)"
BLOCK_BYTES = 512


def unnamed_bytes(pid: int, folder: Path, user: int, file_bytes_max: int) -> int:
    """Return the size of the files below a folder that a process holds and that have no name.

    `user` is the user id of the process, -1 if it is this process's own. It must be called in a
    thread of its own: the thread acts as that user meanwhile, because without CAP_SYS_PTRACE even
    root may not see what another user's process has open.
    """
    prefix = f"{folder}/"
    sizes: dict[int, int] = {}  # by inode
    with _acting_as(user):
        in_flight = _look_at_open(pid, prefix, sizes)
        _look_at_mapped(pid, prefix, sizes, file_bytes_max)
    return sum(sizes.values()) + in_flight * file_bytes_max


def _look_at_open(pid: int, prefix: str, sizes: dict[int, int]) -> int:
    """Note the size of each open file; return how many descriptors wait in sockets."""
    in_flight = 0
    for place in _places(pid):
        numbers = _listed(f"{place}/fd")
        for number in numbers:
            with _unless_ended(place):
                target = _target(f"{place}/fd/{number}", prefix)
                if target.startswith(prefix) and target.endswith(DELETED):
                    _note(f"{place}/fd/{number}", sizes)
                elif target.startswith("socket:"):
                    in_flight += _waiting_in_socket(f"{place}/fdinfo/{number}")
        if numbers:  # all threads have the same descriptors
            break
    return in_flight


def _look_at_mapped(pid: int, prefix: str, sizes: dict[int, int], file_bytes_max: int) -> None:
    """Note the size of each mapped file whose descriptor may be closed."""
    for place in _places(pid):
        lines: list[str] = []
        with _unless_ended(place):
            lines = os.fsdecode(read_all(f"{place}/maps")).strip("\n").split("\n")
        for line in lines:
            if not line.endswith(DELETED):
                continue
            area, _, _, _, inode, path = line.split(maxsplit=5)
            if path.startswith(prefix) and int(inode) not in sizes:
                try:
                    _note(f"/proc/{pid}/map_files/{_unpadded(area)}", sizes)
                except OSError:
                    sizes[int(inode)] = file_bytes_max
        if any(lines):
            return


def _target(path: str, prefix: str) -> str:
    """Return what a descriptor is of; only a job's own folder is so deep that it has no path."""
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return f"{prefix}{DELETED}"
        raise


def _note(path: str, sizes: dict[int, int]) -> None:
    facts = os.stat(path)
    if facts.st_nlink == 0:
        sizes[facts.st_ino] = facts.st_blocks * BLOCK_BYTES


def _unpadded(area: str) -> str:
    """Return the name of a mapped area in map_files, which has no leading zeros."""
    return "-".join(f"{int(address, 16):x}" for address in area.split("-"))


def _waiting_in_socket(path: str) -> int:
    _, _, behind = read_all(path).partition(b"scm_fds:")
    return int(behind.split(b"\n", 1)[0] or 0)


def _places(pid: int) -> Iterator[str]:
    """List where a process is described; one whose first thread has ended only by the others."""
    yield f"/proc/{pid}"
    for thread in _listed(f"/proc/{pid}/task"):
        if int(thread) != pid:
            yield f"/proc/{pid}/task/{thread}"


def _listed(folder: str) -> list[str]:
    found: list[str] = []
    with _unless_ended(os.path.dirname(folder)):
        found = os.listdir(folder)
    return found


@contextlib.contextmanager
def _unless_ended(place: str) -> Iterator[None]:
    """Ignore that something is gone, or belongs to root because its thread has ended."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        pass
    except PermissionError:
        if has_memory(place):
            raise


@contextlib.contextmanager
def _acting_as(user: int) -> Iterator[None]:
    """Let this thread alone access files as another user."""
    if user == -1:
        yield
        return
    group_before, user_before = linux.call("setfsgid", user), linux.call("setfsuid", user)
    try:
        yield
    finally:
        linux.call("setfsuid", user_before)
        linux.call("setfsgid", group_before)
