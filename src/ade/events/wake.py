"""Wake whoever waits for something, inside one process.

News is a hint, never the truth: whoever is woken looks at the database, and looks there from time
to time anyway. So a lost hint costs a moment and a false one costs a look.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

EVERYTHING = "*"


class Bell:
    """Ring in one event loop; rings between two waits count as one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the waiter, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, timeout_seconds: float) -> bool:
        """Wait for a ring, at most so long; tell whether there was one."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True


class Wake:
    """Keep who waits for which topic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bells: dict[str, set[Bell]] = {}

    def publish(self, topics: Iterable[str]) -> None:
        """Wake all who wait for any of these topics; `*` wakes everyone."""
        with self._lock:
            if not self._bells:
                return
            woken: set[Bell] = set()
            for topic in topics:
                if topic == EVERYTHING:
                    woken.update(*self._bells.values())
                else:
                    woken.update(self._bells.get(topic, ()))
        for bell in woken:
            bell.ring()

    @contextmanager
    def listen(self, *topics: str) -> Iterator[Bell]:
        """Ring a bell of the running event loop for each of these topics, while inside."""
        bell = Bell(asyncio.get_running_loop())
        with self._lock:
            for topic in topics:
                self._bells.setdefault(topic, set()).add(bell)
        try:
            yield bell
        finally:
            with self._lock:
                for topic in topics:
                    self._bells[topic].discard(bell)
                    if not self._bells[topic]:
                        del self._bells[topic]
