"""End the process when its orderly end takes too long.

An orderly end waits for jobs, requests, threads and connections. Each of these waits has a limit of
its own, but a resolver, a file system or an extension module may hang without one, and Python waits
for such threads before it exits. So the first signal to end also starts a thread that waits for
nothing: when the time is up it logs what still runs, kills the children and ends the process.

It does not save anything: jobs that ran are found by their leases, as after a crash.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading

import structlog

from ade.sandbox.usage import tree

# For what remains after the grace of the jobs: to hand them back, and to close what is open.
ENDING_SECONDS = 8.0
LOG_SECONDS = 1.0
EXIT_CODE = 1
STACKS_MAX = 50
log = structlog.get_logger()


class Watchdog:
    """Watch over the end of this process, from the first signal on."""

    def __init__(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self._seconds = seconds
        self._loop = loop
        self._lock = threading.Lock()
        self._is_armed = False

    def arm(self) -> None:
        """Begin to count; do nothing if that has begun. Safe to call in a signal handler."""
        if not self._lock.acquire(blocking=False):
            return
        self._is_armed, was_armed = True, self._is_armed
        self._lock.release()
        if not was_armed:
            threading.Thread(target=self._watch, name="ade-watchdog", daemon=True).start()

    def _watch(self) -> None:
        threading.Event().wait(self._seconds)
        # The log may hang as well, on a pipe that nobody reads.
        logging = threading.Thread(target=self._report, daemon=True)
        logging.start()
        logging.join(LOG_SECONDS)
        kill_descendants()
        os._exit(EXIT_CODE)

    def _report(self) -> None:
        log.error(
            "the process did not end in time and is ended now",
            seconds=self._seconds,
            threads=_threads(),
            tasks=self._tasks(),
        )

    def _tasks(self) -> list[str]:
        """Name the tasks of the event loop and where each waits."""
        with contextlib.suppress(RuntimeError):  # the loop adds a task at this moment
            tasks = asyncio.all_tasks(self._loop)
            return sorted(f"{task.get_name()} {_where(task)}" for task in tasks)[:STACKS_MAX]
        return []


def _threads() -> list[str]:
    """Name the threads that Python would wait for, and the others, with what each executes."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in list(sys._current_frames().items()):
        name = names.get(ident, "unknown")
        found.append(f"{name} {frame.f_code.co_filename}:{frame.f_lineno}")
    return sorted(found)[:STACKS_MAX]


def _where(task: "asyncio.Task[object]") -> str:
    stack = task.get_stack(limit=1)
    return f"{stack[0].f_code.co_filename}:{stack[0].f_lineno}" if stack else "ended"


def kill_descendants() -> None:
    """Kill every process below this one."""
    for pid in tree(os.getpid())[1:]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
