"""The time, behind a port that tests replace.

The model. There is one time for all processes: that of the database. A process asks the database
for it now and then (`sync`), and between two answers its boot clock carries it on. CLOCK_BOOTTIME
runs evenly, counts suspended time, and does not move when somebody sets the wall clock of the host.
The wall clock is read once, when the clock is made: on SQLite that is the time of the process, on
other databases it is forgotten with the first answer.

The rule about time. The database read its clock between the moment in which the request was sent
and the moment in which the answer came, so the true offset lies in an interval as wide as the round
trip. The first answer sets the offset to the middle of it. A later one moves the offset only as far
as to the edge of its own interval, so an answer that took long cannot make it worse.

    failure                                   what happens
    ----------------------------------------  ---------------------------------------------------
    the wall clock of this host is stepped    nothing
    the answer takes long                     its interval is wide; the offset stays as it was
    the boot clock drifts                     each answer moves the offset a little; the time stands
                                              still for a moment where it would run backwards
    the database's own clock is stepped, or   the time follows it, `sync` returns by how much, and
    another database answers                  `steady_since` begins anew: the sweeper waits
"""

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ade.domain.ids import uuid7, uuids7
from ade.domain.units import MICROSECONDS

# A difference that no drift explains: the database's clock was stepped.
STEP_US_MIN = 1_000_000
# A difference that changes what the age of a file says, between two looks that are minutes apart.
FILE_STEP_US_MIN = 60_000_000


class Clock(Protocol):
    """Tell the time of the database, for records, and the monotonic time, for leases."""

    @property
    def steady_since(self) -> float:
        """Return since when the time is known to run evenly, as a monotonic time."""
        ...

    def now_us(self) -> int:
        """Return microseconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that only grow, also while the machine is suspended."""
        ...


def _wall_us() -> int:
    return time.time_ns() // 1000  # noqa: TID251 - read once, and compared with the dates of files


def _boot_us() -> int:
    """Return microseconds since boot; CLOCK_BOOTTIME counts suspended time, as leases do."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class SystemClock:
    """Tell the time that all processes share, carried by the boot clock of this machine."""

    def __init__(
        self, wall_us: Callable[[], int] = _wall_us, boot_us: Callable[[], int] = _boot_us
    ) -> None:
        self.boot_us = boot_us
        self.steady_since = -math.inf
        self.is_synced = False
        self._offset_us = wall_us() - boot_us()
        self._error_us = 0
        self._latest_us = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Return microseconds since the epoch, UTC; never less than before, but after a step."""
        with self._lock:
            self._latest_us = max(self._latest_us, self.boot_us() + self._offset_us)
            return self._latest_us

    def monotonic(self) -> float:
        """Return seconds since boot, also those in which the machine was suspended."""
        return self.boot_us() / MICROSECONDS

    def sync(self, database_us: int, sent_us: int, received_us: int) -> int:
        """Take an answer of the database's clock, asked for between two times since boot.

        Return by how much that clock was stepped, 0 if it runs as before. After the first answer,
        and after a step, the time is known to be steady only from now on.
        """
        low, high = database_us - received_us, database_us - sent_us
        with self._lock:
            before = self._offset_us if self.is_synced else (low + high) // 2
            self._offset_us = min(max(before, low), high)
            moved_us, width_us = self._offset_us - before, high - low
            stepped = self.is_synced and abs(moved_us) > STEP_US_MIN + self._error_us
            # The middle is wrong by half of the interval at most, another point by all of it.
            known_us = self._error_us if self.is_synced else width_us // 2 + 1
            self._error_us = min(known_us, width_us)
            if stepped or not self.is_synced:
                self._latest_us = 0
                self.steady_since = received_us / MICROSECONDS
            self.is_synced = True
        return moved_us if stepped else 0

    def begin_after(self, recorded_us: int) -> int:
        """Begin no earlier than what was recorded, on a database that has no clock of its own.

        Return by how much the wall clock was behind, 0 if it was not.
        """
        with self._lock:
            behind_us = max(recorded_us - self.boot_us() - self._offset_us, 0)
            self._offset_us += behind_us
            self.is_synced = True
        return behind_us


class FileClock:
    """Notice steps of the wall clock, which dates files: their ages are then not what they seem."""

    def __init__(
        self, wall_us: Callable[[], int] = _wall_us, boot_us: Callable[[], int] = _boot_us
    ) -> None:
        self._wall_us = wall_us
        self._boot_us = boot_us
        self._offset_us = wall_us() - boot_us()
        self._stepped_at = -math.inf

    def steady_seconds(self) -> float:
        """Return how long ago a step was noticed; infinity if none was since the start."""
        boot_us = self._boot_us()
        offset_us = self._wall_us() - boot_us
        # The clock may be slewed by some hundred parts in a million between two looks.
        if abs(offset_us - self._offset_us) > FILE_STEP_US_MIN:
            self._stepped_at = boot_us / MICROSECONDS
        self._offset_us = offset_us
        return boot_us / MICROSECONDS - self._stepped_at


class ManualClock:
    """Stand still until `advance` is called; for tests."""

    def __init__(self, start_us: int = 1_700_000_000 * MICROSECONDS) -> None:
        self._now_us = start_us
        self.steady_since = -math.inf

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
