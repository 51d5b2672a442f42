"""SQLite files for the benchmark, on a real disk: elsewhere FULL durability costs nothing."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

DISK = Path(__file__).parent / ".data"
FSYNC_TRIES = 50


@contextmanager
def fresh_file() -> Iterator[str]:
    """Name a database file that does not exist yet, in a folder removed afterwards."""
    DISK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        yield str(Path(folder) / "queue.db")


def describe() -> dict[str, str]:
    return {
        "sqlite_version": sqlite3.sqlite_version,
        "journal_mode": "wal",
        "synchronous": "full",
        "fsync": f"{fsync_seconds() * 1000:.2f} ms",
    }


def fsync_seconds() -> float:
    """Time a small durable write; the disk is throttled at times, and every figure with it."""
    DISK.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=DISK) as file:
        times = []
        for _ in range(FSYNC_TRIES):
            os.write(file.fileno(), b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times)
