"""How fast the queue empties, so that whoever is turned away knows when to come back."""

import math
import threading
from collections import deque

WINDOW_US = 60 * 1_000_000
RETRY_AFTER_SECONDS_UNKNOWN = 5
RETRY_AFTER_SECONDS_MAX = 300
MARKS_MAX = 1000


class DrainMeter:
    """Measure how many jobs leave the queue, over the last minute of this process."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque(maxlen=MARKS_MAX)
        self._lock = threading.Lock()

    def mark(self, now_us: int, jobs: int) -> None:
        """Note that so many jobs left the queue."""
        if jobs:
            with self._lock:
                self._marks.append((now_us, jobs))

    def retry_after_seconds(self, now_us: int) -> int:
        """Estimate when one place will be free, in whole seconds from 1 up."""
        with self._lock:
            while self._marks and self._marks[0][0] < now_us - WINDOW_US:
                self._marks.popleft()
            if not self._marks:
                return RETRY_AFTER_SECONDS_UNKNOWN
            left = sum(jobs for _, jobs in self._marks)
            span_us = max(now_us - self._marks[0][0], 1_000_000)
        return max(1, min(math.ceil(span_us / 1e6 / left), RETRY_AFTER_SECONDS_MAX))
