"""Do one thing for each of many, a few at a time, in order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# Results that wait for an earlier one, for each thing that is under way.
AHEAD = 4


async def mapped(
    do: Callable[[Item], Awaitable[Result]], items: Iterable[Item], concurrency: int
) -> AsyncIterator[Result]:
    """Yield what `do` returns for each item; items are taken only as results are."""
    places = asyncio.Semaphore(concurrency)
    under_way: deque[asyncio.Task[Result]] = deque()

    async def in_turn(item: Item) -> Result:
        async with places:
            return await do(item)

    try:
        for item in items:
            under_way.append(asyncio.ensure_future(in_turn(item)))
            if len(under_way) >= concurrency * AHEAD:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
