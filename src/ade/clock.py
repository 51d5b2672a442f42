"""The time, behind a port that tests replace."""

import random
import time
from typing import Protocol

from ade.domain.ids import uuid7, uuids7
from ade.domain.units import MICROSECONDS


class Clock(Protocol):
    """Tell the time of day, for records, and the monotonic time, for leases."""

    def now_us(self) -> int:
        """Return microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow, also while the machine is suspended."""
        ...


class SystemClock:
    """Read the machine's clocks."""

    def now_us(self) -> int:
        """Return microseconds since the epoch, UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Return seconds since boot; CLOCK_BOOTTIME counts suspended time, as leases do."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


class ManualClock:
    """Stand still until `advance` is called; for tests."""

    def __init__(self, start_us: int = 1_700_000_000 * MICROSECONDS) -> None:
        self._now_us = start_us

    def now_us(self) -> int:
        """Return the time that was set."""
        return self._now_us

    def monotonic(self) -> float:
        """Return the same time in seconds."""
        return self._now_us / MICROSECONDS

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_us += int(seconds * MICROSECONDS)


def new_id(clock: Clock) -> str:
    """Make an identifier that sorts by the clock's time; it need not be hard to guess."""
    return uuid7(clock.now_us(), random.getrandbits(62))


def new_ids(clock: Clock, count: int) -> list[str]:
    """Make many ascending identifiers of one moment."""
    return uuids7(clock.now_us(), random.randbytes(8 * count))
