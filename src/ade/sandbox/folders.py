"""Folders named after the process that owns them, and the removal of folders that a job wrote to.

A folder whose owner no longer exists is abandoned: a killed process left it.
"""

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

PREFIX = "ade-"
DEPTH_MAX = 100
LITTLE_FILES, LITTLE_BYTES = 64, 1 << 20
# Processes that were killed a moment ago may still write, and another thread may empty a part.
REMOVAL_WAITS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0)


def own_name() -> str:
    """Return a unique folder name that carries this process's pid."""
    return f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"


def abandoned(base: Path) -> list[Path]:
    """List the folders whose processes died without removing them."""
    try:
        names = [name for name in os.listdir(base) if name.startswith(PREFIX)]
    except OSError:
        return []
    owners = {name: name.removeprefix(PREFIX).partition("-")[0] for name in names}
    return [
        base / name
        for name, pid in owners.items()
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}")
    ]


def remove_tree(path: Path) -> None:
    """Remove a folder that a job could write to, however deep it is and whatever its modes are.

    If something was written meanwhile, it tries again, for about a second and a half.
    """
    _remove(path)
    for wait_seconds in REMOVAL_WAITS_SECONDS:
        if not os.path.lexists(path):
            return
        time.sleep(wait_seconds)
        _remove(path)


def _remove(path: Path) -> None:
    """Try once to remove a folder.

    Each folder inside is moved to the top before it is emptied, so that no path becomes too long,
    nothing recurses, and no link is followed.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        waiting = _empty(top, top, 0)
        done = 0
        while done < len(waiting):
            name = waiting[done]
            done += 1
            with contextlib.suppress(OSError):
                waiting += _take_apart(top, name, len(waiting))
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        path.rmdir()


def _take_apart(top: int, name: str, used: int) -> list[str]:
    """Empty one folder at the top and remove it; return the names of folders moved out of it."""
    seen = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        os.chmod(f"/proc/self/fd/{seen}", 0o700)
        folder = os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(seen)
    try:
        inside = _empty(top, folder, used)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return inside


def _empty(top: int, folder: int, used: int) -> list[str]:
    """Remove the files of a folder, and move its folders to the top under new names."""
    moved: list[str] = []
    with os.scandir(folder) as listed:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed]
    for name, is_folder in entries:
        with contextlib.suppress(OSError):
            if is_folder:
                new = f"{secrets.token_hex(8)}-{used + len(moved)}"
                os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
                moved.append(new)
            else:
                os.unlink(name, dir_fd=folder)
    return moved


def holds_little(folder: int) -> bool:
    """Tell whether a job's file system, given by a descriptor, is small enough to free quickly."""
    held = os.fstatvfs(folder)
    taken_bytes = (held.f_blocks - held.f_bfree) * held.f_frsize
    return held.f_files - held.f_ffree <= LITTLE_FILES and taken_bytes <= LITTLE_BYTES


def fits(path: Path, bytes_max: int, entries_max: int, *, unnamed_bytes: int = 0) -> bool:
    """Tell whether a folder that a job writes to is within its limits; links are not followed.

    `unnamed_bytes` is the size of what is in no folder. It descends by descriptors, so that no path
    becomes too long, and at most DEPTH_MAX levels.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return unnamed_bytes <= bytes_max
    size, entries = unnamed_bytes, 0
    open_folders = [top]
    listed = [_listing(top)]
    try:
        while open_folders:
            entry = next(listed[-1], None)
            if entry is None:
                listed.pop()
                os.close(open_folders.pop())
                continue
            entries += 1
            name, is_folder = entry
            with contextlib.suppress(OSError):
                size += (
                    os.stat(name, dir_fd=open_folders[-1], follow_symlinks=False).st_blocks * 512
                )
            if entries > entries_max or size > bytes_max or len(open_folders) > DEPTH_MAX:
                return False
            if is_folder:
                with contextlib.suppress(OSError):
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                    open_folders.append(os.open(name, flags, dir_fd=open_folders[-1]))
                    listed.append(_listing(open_folders[-1]))
    finally:
        for folder in open_folders:
            os.close(folder)
    return True


def _listing(folder: int) -> Iterator[tuple[str, bool]]:
    with os.scandir(folder) as listed:
        return iter([(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed])


def closed_to_others(folders: Iterable[Path]) -> Path | None:
    """Return the first of these folders that other users may not enter; None if there is none."""
    for folder in folders:
        if folder.exists() and not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None
