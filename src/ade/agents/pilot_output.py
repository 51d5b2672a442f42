"""What pilots leave in their folder, a few files for each block: kept for a week.

A block's files begin with its name: the output of `local` and Slurm, the scripts of Parsl.
"""

import contextlib
import re
import time
from collections.abc import Collection
from pathlib import Path

KEPT_SECONDS = 7 * 24 * 3600.0


def remove_old_output(
    folder: Path, prefix: str, live: Collection[str], kept_seconds: float = KEPT_SECONDS
) -> int:
    """Remove files of blocks that ended and were not written to for long; return how many."""
    block_file = re.compile(rf"(?:parsl\.)?({re.escape(prefix)}[0-9a-f]{{10}})\.")
    oldest = time.time() - kept_seconds  # noqa: TID251 - compared with the dates of files
    removed = 0
    for file in folder.iterdir():
        found = block_file.match(file.name)
        if found and found[1] not in live:
            with contextlib.suppress(OSError):  # another scaler's process was faster
                if file.lstat().st_mtime < oldest:
                    file.unlink()
                    removed += 1
    return removed
