"""Write into a job's folder, which the job's own code may have changed before."""

import contextlib
import os
import shutil
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file, never through a link that a job left in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def place_file(source: Path, place: Path, *, copied: bool) -> Path:
    """Show a file in a job's folder: the same bytes where that is possible, else a copy.

    Code that is not sandboxed works in that folder and must get a copy: what it writes there would
    change the stored bytes.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    if not copied:
        with contextlib.suppress(OSError):  # another disk, or a file system without links
            os.link(source, place)
            return place
    shutil.copyfile(source, place)
    return place
