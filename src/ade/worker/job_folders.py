"""Remove the folders of jobs from this disk: of jobs that were deleted, or that ran for a server.

The model. A job's files are copies for people; what counts is in the database and among the blobs.
The process that deletes a job removes its folder at once, from its own disk. Every other process
looks through its jobs folder now and then, and removes what the database does not know any more.
A job's row is there before its folder, so a folder without a row is that of a deleted job; it is
left alone for an hour all the same.

A worker without a database keeps nothing: the folder of an attempt goes when the attempt ends.
"""

import asyncio
import os
import re
import secrets
import shutil
import time
from pathlib import Path

import structlog

from ade.kernel import Kernel

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
YOUNG_SECONDS = 3600.0
ABANDONED_SECONDS = 24 * 3600.0
FOLDERS_PER_SWEEP = 20_000
FOLDERS_PER_READ = 500
GONE = ".gone-"
log = structlog.get_logger()


class JobFolders:
    """Remove the folders of deleted jobs from one disk, some at each call."""

    def __init__(self, kernel: Kernel, jobs_dir: Path) -> None:
        self._kernel = kernel
        self._jobs_dir = jobs_dir
        self._after = ""

    async def remove_deleted(self) -> int:
        """Look at the next folders; return how many were removed."""
        names = await asyncio.to_thread(_old_folders, self._jobs_dir, self._after)
        looked_at = names[:FOLDERS_PER_SWEEP]
        self._after = looked_at[-1] if len(looked_at) < len(names) else ""
        removed = 0
        for start in range(0, len(looked_at), FOLDERS_PER_READ):
            some = looked_at[start : start + FOLDERS_PER_READ]
            known = await self._kernel.read(lambda reading, ids=some: reading.known_jobs(ids))  # type: ignore[misc]
            for name in set(some) - known:
                await asyncio.to_thread(shutil.rmtree, self._jobs_dir / name, ignore_errors=True)
                removed += 1
        if removed:
            log.info("folders of deleted jobs removed", folders=removed)
        return removed


def _old_folders(jobs_dir: Path, after: str) -> list[str]:
    """List the folders of jobs that are not young, in the order of their names."""
    before = time.time() - YOUNG_SECONDS  # noqa: TID251 - compared with the dates of files
    try:
        with os.scandir(jobs_dir) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.name > after
                and ID.fullmatch(entry.name)
                and entry.stat(follow_symlinks=False).st_mtime < before
            )
    except FileNotFoundError:
        return []


def take_away(folder: Path) -> Path | None:
    """Give a folder another name, so that a next attempt of its job finds none."""
    gone = folder.with_name(f"{GONE}{secrets.token_hex(8)}")
    try:
        folder.rename(gone)
    except OSError:
        return None
    return gone


def remove_abandoned(jobs_dir: Path) -> None:
    """Remove what attempts left that ended with their process, on a host that keeps nothing."""
    before = time.time() - ABANDONED_SECONDS  # noqa: TID251 - compared with the dates of files
    for entry in jobs_dir.glob("*"):
        is_ours = ID.fullmatch(entry.name) or entry.name.startswith(GONE)
        if is_ours and entry.lstat().st_mtime < before:
            shutil.rmtree(entry, ignore_errors=True)
