"""Write into a job's folder, where the job's own code may have been before."""

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file, never through a link that a job left in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o644), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
