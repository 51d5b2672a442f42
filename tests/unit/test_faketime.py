"""A process under a fake clock: its wall clock is stepped, its boot clock is the machine's."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from tests.faketime import FakeClock, needs_faketime
from tests.processes import eventually

pytestmark = needs_faketime

READ = """
import sys, time
for _ in sys.stdin:
    time.sleep(0.01)
    clocks = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)
    print(time.time(), *map(time.clock_gettime, clocks), flush=True)
"""


def _read(process: Any, offset: int) -> tuple[float, ...]:
    """Read its clocks; nothing while the wall clock has not been stepped yet."""
    process.stdin.write("\n")
    process.stdin.flush()
    clocks = tuple(map(float, process.stdout.readline().split()))
    return clocks if abs(clocks[0] - time.time() - offset) < 10 else ()


def test_a_step_moves_the_wall_clock_and_no_other(tmp_path: Path) -> None:
    clock = FakeClock(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", READ],
        env=os.environ | clock.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for step, offset in ((0, 0), (3600, 3600), (-3620, -20), (86_420, 86_400)):
            clock.step(step)
            wall, real, monotonic, boot = eventually(partial(_read, process, offset))
            assert abs(wall - time.time() - offset) < 10
            assert abs(real - time.time() - offset) < 10
            assert abs(monotonic - time.monotonic()) < 10
            assert abs(boot - time.clock_gettime(time.CLOCK_BOOTTIME)) < 10
