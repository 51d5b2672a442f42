"""Find out which process keeps a SQLite file locked, from what Linux tells in /proc/locks.

Processes of another container or host are not listed there, and neither are locks of a file system
without them: then nothing is found.
"""

import contextlib
import os
from pathlib import Path

LOCKS = Path("/proc/locks")
# The byte of the -shm file by which one connection at a time may write to the log.
WRITE_LOCK_BYTE = 120
NAMED_MAX = 3


def holders(database: str) -> list[str]:
    """Name the other processes that keep a database from being written, with their ids."""
    files = {inode for path in (database, f"{database}-shm") if (inode := _inode(path))}
    shared = _inode(f"{database}-shm")
    found: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for line in LOCKS.read_text().splitlines():
            lock = _parsed(line)
            if lock is None:
                continue
            pid, inode, start, end = lock
            blocks = inode != shared or start <= WRITE_LOCK_BYTE <= end
            if inode in files and blocks and pid not in (0, -1, os.getpid()):
                found[pid] = f"{_name(pid)} (process {pid})"
    return list(found.values())[:NAMED_MAX]


def _inode(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.stat(path).st_ino
    return None


def _parsed(line: str) -> tuple[int, int, int, float] | None:
    """Read a line such as `1: POSIX  ADVISORY  WRITE 4711 fd:00:123 120 120`."""
    words = line.split()
    if len(words) != 8 or words[1] != "POSIX" or words[3] != "WRITE":
        return None
    end = float("inf") if words[7] == "EOF" else float(words[7])
    return int(words[4]), int(words[5].rpartition(":")[2]), int(words[6]), end


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "unknown"
