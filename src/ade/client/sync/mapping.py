"""Do one thing for each of many, a few at a time, in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# Results that wait for an earlier one, for each thing that is under way.
AHEAD = 4


def mapped(
    do: Callable[[Item], Result], items: Iterable[Item], concurrency: int
) -> Iterator[Result]:
    """Yield what `do` returns for each item; items are taken only as results are."""
    from concurrent.futures import Future, ThreadPoolExecutor

    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="ade-map")
    under_way: deque[Future[Result]] = deque()
    try:
        for item in items:
            under_way.append(pool.submit(do, item))
            if len(under_way) >= concurrency * AHEAD:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
