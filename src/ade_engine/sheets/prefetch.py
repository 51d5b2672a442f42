"""Process several pieces concurrently and yield the results in order.

Numpy and polars release the GIL while they work, so threads are enough. No thread outlives the
reading: a process that is forked later has none of them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

WORKERS_MAX = 2  # inflating the pieces and keeping the results need a core, too

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def prefetch(work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    """Yield `work(piece)` for every piece, computed a few pieces ahead of the consumer."""
    workers = min(WORKERS_MAX, os.cpu_count() or 1)
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers, "scan") as pool:
        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
