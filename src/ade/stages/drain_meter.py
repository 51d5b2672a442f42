"""Measure how fast the queue drains, for the `Retry-After` of refused submissions."""

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
        self._marks: deque[tuple[int, str, int]] = deque(maxlen=MARKS_MAX)
        self._lock = threading.Lock()

    def mark(self, now_us: int, workspace_id: str, jobs: int) -> None:
        """Record that so many jobs of a workspace left the queue."""
        if jobs:
            with self._lock:
                self._marks.append((now_us, workspace_id, jobs))

    def retry_after_seconds(self, now_us: int, workspace_id: str | None = None) -> int:
        """Estimate when one place will be free, in a workspace if one is named; from 1 s up."""
        with self._lock:
            while self._marks and self._marks[0][0] < now_us - WINDOW_US:
                self._marks.popleft()
            left = sum(jobs for _, whose, jobs in self._marks if workspace_id in (None, whose))
            if not left:
                return RETRY_AFTER_SECONDS_UNKNOWN
            span_us = max(now_us - self._marks[0][0], 1_000_000)
        return max(1, min(math.ceil(span_us / 1e6 / left), RETRY_AFTER_SECONDS_MAX))
