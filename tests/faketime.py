"""The wall clock of a live process, stepped by a test with libfaketime.

    clock = FakeClock(tmp_path)
    server = start.server(**clock.environment)
    clock.step(-3600)  # within STEP_SECONDS_MAX its wall clock tells the time of an hour ago

Only the wall clock is faked. `FAKETIME_DONT_FAKE_MONOTONIC` leaves CLOCK_MONOTONIC and
CLOCK_BOOTTIME alone, as the step of a real host's clock does (`tests/unit/test_faketime.py`). A
child that is started with an environment of its own keeps the real clock.
"""

import contextlib
import os
import uuid
from functools import cache
from glob import glob
from pathlib import Path

import pytest

LIBRARIES = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
)
MISSING = "libfaketime is not installed (Debian: apt-get install libfaketime)"
# A process notices a step when it looks at its clock and its last look at the file is a second old.
STEP_SECONDS_MAX = 3.0
# libfaketime 0.9.10 answers EINVAL to the absolute sleeps of Python 3.11 and later when it leaves
# the monotonic clock alone.
SITE = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds)\n"


@cache
def library() -> str | None:
    """Find libfaketime, None if it is not installed."""
    return next((found for pattern in LIBRARIES for found in sorted(glob(pattern))), None)


needs_faketime = pytest.mark.skipif(library() is None, reason=MISSING)


class FakeClock:
    """Hold how far the wall clock of some processes is from the real one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / f"faketime-{uuid.uuid4().hex[:8]}"
        self._folder.mkdir(parents=True)
        (self._folder / "sitecustomize.py").write_text(SITE)
        self._file = self._folder / "offset"
        self.offset_seconds = 0
        self.step(0)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that put a process under this clock."""
        found = library()
        assert found is not None, MISSING
        return {
            "LD_PRELOAD": found,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            # Not FAKETIME_NO_CACHE: reading the file at each look at a clock takes ten times the
            # processor that `ade serve` needs by itself.
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",  # its name in other versions
            # Without it, waits on the monotonic clock end at once, among them those for the
            # interpreter's lock: threads of one process then starve each other.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": str(self._folder),
        }

    def step(self, seconds: int) -> None:
        """Step the clock from where it is now, forwards or backwards; noticed a moment later."""
        self.offset_seconds += seconds
        written = self._file.with_suffix(".new")
        written.write_text(f"{self.offset_seconds:+d}\n")
        written.replace(self._file)  # a process never reads half of it


def forget_dead_processes() -> None:
    """Remove the shared memory that killed processes left, or their successors could not start."""
    for file in glob("/dev/shm/*faketime_s*_*"):
        pid = file.rpartition("_")[2]
        if pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)
