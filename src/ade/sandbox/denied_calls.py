"""Deny the system calls that a child's seccomp listener reports, and record their names.

The listener comes from the child. If a package took over its zygote, another process may hold the
listener too and take a notification away between the moment at which this process is woken and the
one at which it asks for it; the kernel would then block the question. So a thread asks, one for
each notification, and the event loop does not wait for it. A blocked thread ends with the job;
before Linux 6.6 it does not, so there is a limit on such threads. At the limit, and after
REFUSALS_MAX notifications of one job, the listener is closed: further calls fail with ENOSYS, and
are not named.
"""

import asyncio
import contextlib
import os
import select
import threading

from ade.sandbox.layers import seccomp

REFUSALS_MAX = 64
THREADS_MAX = 64
FAMILIES = {1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET"}


class DeniedCalls:
    """Deny the calls of one child until closed; `names` lists them, each once.

    `settled` is set while no thread has a call to record.
    """

    def __init__(self, listener: int) -> None:
        self.names: list[str] = []
        self._listener = listener
        self._refusals = 0
        self.settled = asyncio.Event()
        self.settled.set()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener, self._ask)

    def close(self) -> None:
        """Close the listener; calling it again does nothing."""
        if self._listener >= 0:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = -1

    def _ask(self) -> None:
        """Ask for a notification in a thread, and do not watch the listener meanwhile."""
        polled = select.poll()
        polled.register(self._listener, select.POLLIN)
        is_pending = any(events & select.POLLIN for _, events in polled.poll(0))
        # Without a notification, it was woken because the child has ended.
        if not is_pending or not _threads.acquire(blocking=False):
            self.close()
            return
        self._loop.remove_reader(self._listener)
        self.settled.clear()
        listener = os.dup(self._listener)  # the thread's own, which it closes
        threading.Thread(target=self._deny, args=(listener,), daemon=True).start()

    def _deny(self, listener: int) -> None:
        try:
            denied = seccomp.refuse_next(listener)
        finally:
            os.close(listener)
            _threads.release()
        with contextlib.suppress(RuntimeError):  # the loop may be closed meanwhile
            self._loop.call_soon_threadsafe(self._record, denied)

    def _record(self, denied: tuple[str, list[int]] | None) -> None:
        self.settled.set()
        if denied is not None:
            name, arguments = denied
            if name == "socket":
                name = f"socket {FAMILIES.get(arguments[0], arguments[0])}"
            elif name == "mmap":  # the only kind that is refused
                name = "mmap MAP_SHARED|MAP_ANONYMOUS"
            if name not in self.names:
                self.names.append(name)
            self._refusals += 1
        if self._listener < 0:
            return
        if denied is None or self._refusals >= REFUSALS_MAX:
            self.close()
        else:
            self._loop.add_reader(self._listener, self._ask)


_threads = threading.Semaphore(THREADS_MAX)
