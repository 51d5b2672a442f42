"""No attack on memory or disk exceeds its limit by more than is documented, as seen from outside.

Every level, with and without memory groups. The driver runs in a memory group of its own, which
limits nothing and sees everything that its jobs take. Their folders are on a file system of its
own. docs/explanation/sandbox.md states the same bounds.
"""

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.conftest import IS_FAST
from tests.sandbox.driver import LIMITS, RULES
from tests.sandbox.driver_client import DriverClient
from tests.sandbox.hostile.snippet import PRELUDE
from tests.sandbox.modes import BY_NAME, FAST, LANDLOCK, USER, Mode
from tests.sandbox.resource_attacks import DISK, HOLD, MEMORY

from ade.sandbox.cgroup import ROOT, own_groups, remove_when_empty

MIB = 1 << 20
SAMPLE_SECONDS = 0.004
# The documented bounds: FACTOR times the limit, and what each processor can fill meanwhile.
FACTOR = 1.5
BETWEEN_MEASUREMENTS_MB = 96 * (os.cpu_count() or 1)
NOISE_MB = 16  # zygotes, spares and the driver itself
TRIES_COUNTED = 3
TRIED = FAST if IS_FAST else ("root", "user", "user-landlock", "docker")
FILES_MB = RULES.job_mb + 2 * RULES.tmp_mb


@dataclass
class Situation:
    """Hold a driver, and what its jobs take, as seen from outside."""

    mode: Mode
    is_grouped: bool
    driver: DriverClient
    group: Path
    scratch: Path

    def memory_mb(self) -> int:
        """Return the memory of all processes, without the cache of files on a disk."""
        stat = (self.group / "memory.stat").read_text().split()
        facts = dict(zip(stat[::2], map(int, stat[1::2]), strict=True))
        used = int((self.group / "memory.usage_in_bytes").read_text())
        return (used - facts["total_cache"] + facts["total_shmem"]) // MIB

    def disk_mb(self) -> int:
        """Return how full the file system of the jobs' folders is."""
        seen = os.statvfs(f"/proc/{self.driver.pid}/root{self.scratch}")
        return (seen.f_blocks - seen.f_bfree) * seen.f_frsize // MIB

    def peak_of(self, source: str) -> tuple[int, int, dict[str, Any]]:
        """Run an attack; return by how many MiB memory and disk grew at most, and the report."""
        before = self.memory_mb(), self.disk_mb()
        peaks = list(before)
        over = threading.Event()

        def sample() -> None:
            while not over.wait(SAMPLE_SECONDS):
                peaks[:] = max(peaks[0], self.memory_mb()), max(peaks[1], self.disk_mb())

        sampling = threading.Thread(target=sample)
        sampling.start()
        try:
            limits = {"cpu_ms": 6_000, "timeout_ms": 6_000}
            report = self.driver.run(source=PRELUDE + source + HOLD, limits=limits)
        finally:
            over.set()
            sampling.join()
        return peaks[0] - before[0], peaks[1] - before[1], report


@pytest.fixture(scope="module", params=[f"{m}-{g}" for m in TRIED for g in ("group", "counted")])
def situation(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Situation]:
    """Start a driver in a group and with a file system of its own."""
    name, _, grouping = request.param.rpartition("-")
    mode, is_grouped = BY_NAME[name], grouping == "group"
    if os.geteuid() != 0:
        pytest.skip("only root may measure with a group and a file system of its own")
    below = next((path for names, path in own_groups() if "memory" in names), None)
    if below is None:
        pytest.skip("there is no cgroup version 1 with memory to measure by")
    group = ROOT / "memory" / below / f"test-{secrets.token_hex(4)}"
    group.mkdir()
    scratch = Path("/var/tmp") / group.name
    scratch.mkdir()
    owner = USER if mode.options and "--user" in mode.options else 0
    for path in (group, *group.iterdir()):
        os.chown(path, owner, owner)  # delegated, so that an ordinary user may make groups too
    driver = DriverClient(mode, group=group, scratch=scratch, memory_cgroup=int(is_grouped))
    try:
        assert driver.is_ready
        yield Situation(mode, is_grouped, driver, group, scratch)
    finally:
        driver.end()
        with contextlib.suppress(OSError):
            scratch.rmdir()
        remove_when_empty(group)


def _bound_mb(situation: Situation) -> float:
    """Return how much memory a job may take, in all, as documented."""
    in_memory_mb = 0 if situation.mode.level == LANDLOCK else FILES_MB
    limit_mb = LIMITS["memory_mb"]
    if situation.is_grouped:
        is_alone = situation.mode.level == LANDLOCK
        return 1.25 * limit_mb + 32 if is_alone else limit_mb + in_memory_mb
    return FACTOR * limit_mb + BETWEEN_MEASUREMENTS_MB + in_memory_mb


@pytest.mark.parametrize("attack", MEMORY)
def test_memory_is_bounded(attack: str, situation: Situation) -> None:
    bound_mb = _bound_mb(situation) + NOISE_MB
    assert _holds(situation, MEMORY[attack], lambda memory_mb, _: memory_mb <= bound_mb)


@pytest.mark.parametrize("attack", DISK)
def test_disk_is_bounded(attack: str, situation: Situation) -> None:
    disk_bound_mb = FACTOR * RULES.job_mb + BETWEEN_MEASUREMENTS_MB
    bound_mb = _bound_mb(situation) + NOISE_MB
    if situation.mode.level == LANDLOCK:
        assert _holds(situation, DISK[attack], lambda _, disk_mb: disk_mb <= disk_bound_mb)
    else:
        assert _holds(
            situation,
            DISK[attack],
            lambda memory_mb, disk_mb: disk_mb == 0 and memory_mb <= bound_mb,
        )


def _holds(situation: Situation, attack: str, is_within: Callable[[float, float], bool]) -> bool:
    """Tell whether a limit holds; where a supervisor counts, a busy machine may delay it once."""
    tries = 1 if situation.is_grouped else TRIES_COUNTED
    found = []
    for _ in range(tries):
        memory_mb, disk_mb, report = situation.peak_of(attack)
        assert not report["left"], report
        if is_within(memory_mb, disk_mb):
            return True
        found.append((memory_mb, disk_mb, report["verdict"]))
    pytest.fail(f"the limit was exceeded each time: {found}")


def test_what_is_measured_is_what_is_taken(situation: Situation) -> None:
    """Take half of what is allowed in each way, and see it from outside."""
    take = "kept = bytearray(b'x') * (32 << 20)\nopen('big', 'wb').write(bytes(7 << 20))\n"
    memory_mb, disk_mb, report = situation.peak_of(take)
    assert report["verdict"] == "succeeded", report
    assert memory_mb >= 32
    assert disk_mb == (7 if situation.mode.level == LANDLOCK else 0)
