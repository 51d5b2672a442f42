"""Notify the waiters for a topic, inside one process.

A notification is a hint and never the truth: a waiter that gets one reads the database, and reads
it from time to time anyway. So a lost notification costs a moment, and a false one costs a read.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

EVERYTHING = "*"


class Subscription:
    """Wait in one event loop; several notifications between two waits count as one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._notified = asyncio.Event()

    @property
    def is_notified(self) -> bool:
        """Tell whether there was a notification for which nobody has waited yet."""
        return self._notified.is_set()

    def notify(self) -> None:
        """End the wait, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notified.set)

    async def wait(self, timeout_seconds: float) -> bool:
        """Wait for a notification up to the timeout; tell whether there was one."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._notified.wait()
        except TimeoutError:
            return False
        self._notified.clear()
        return True


class Notifier:
    """Hold the subscriptions of each topic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: dict[str, set[Subscription]] = {}

    def publish(self, topics: Iterable[str]) -> None:
        """Notify all subscriptions of these topics; `*` notifies every subscription."""
        with self._lock:
            if not self._subscriptions:
                return
            notified: set[Subscription] = set()
            for topic in topics:
                if topic == EVERYTHING:
                    notified.update(*self._subscriptions.values())
                else:
                    notified.update(self._subscriptions.get(topic, ()))
        for subscription in notified:
            subscription.notify()

    @contextmanager
    def subscribe(self, *topics: str) -> Iterator[Subscription]:
        """Subscribe to these topics in the running event loop, until the block ends."""
        subscription = Subscription(asyncio.get_running_loop())
        with self._lock:
            for topic in topics:
                self._subscriptions.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                for topic in topics:
                    self._subscriptions[topic].discard(subscription)
                    if not self._subscriptions[topic]:
                        del self._subscriptions[topic]
