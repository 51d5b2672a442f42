"""Prove that this process can write to its database.

A read proves little: it uses another connection than the writer, and a server that can only be read
answers it. So readiness is a row that is written and committed through the group commit, as jobs
are. Concurrent probes share one write, and its outcome counts for a second.
"""

import asyncio
import time

from ade.domain.errors import AdeError
from ade.http.health import Component
from ade.store.session import Session

FRESH_SECONDS = 1.0
# Less than a health check waits for a component, so that it can say what is wrong.
WRITE_SECONDS_MAX = 4.0


class WriteProbe:
    """Check the database by a write."""

    def __init__(self, store: Session) -> None:
        self._store = store
        self._writing: asyncio.Task[None] | None = None
        self._found: tuple[float, Component] | None = None

    async def __call__(self) -> Component:
        """Return whether a write was committed within the last second, or within this call."""
        if self._found is not None and time.monotonic() - self._found[0] < FRESH_SECONDS:
            return self._found[1]
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        done, _ = await asyncio.wait([self._writing], timeout=WRITE_SECONDS_MAX)
        if not done or self._found is None:
            return Component("down", f"No write was committed within {WRITE_SECONDS_MAX:g} s.")
        return self._found[1]

    async def _write(self) -> None:
        self._found = None
        try:
            await self._store.achange(lambda transaction: transaction.directory.prove_write())
            found = Component("ok", "A write was committed.")
        except AdeError as error:
            found = Component("down", error.detail)
        except Exception as error:
            found = Component("down", f"A write failed: {type(error).__name__}.")
        self._found = time.monotonic(), found
