"""Import once, fork often: `python -s -B zygote.py SOURCE PLAN`, with the worker's line as fd 3.

The loop has no threads and allocates almost nothing. It reads fixed messages from its line, forks,
reports how its children end, and dies when the line is closed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from typing import TYPE_CHECKING

if __name__ == "__main__":  # run by its path, by the environment's interpreter
    sys.path[0] = sys.argv[1]  # instead of the folder of this script

from ade.sandbox.child import fork_hooks, job_process, zygote_messages
from ade.sandbox.child.plan import ZygotePlan
from ade.sandbox.child.zygote_messages import Message
from ade.sandbox.layers import linux

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE = 3
# Threads that a fork may leave behind, by name: they are known to sleep, to hold no lock meanwhile,
# and not to be needed. The one of polars deletes spilled files, which the end of a job does anyway.
EXPENDABLE_THREADS = {"polars-ooc-clea"}


def main() -> None:
    """Import what the plan names, then fork on request."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    linux.set_name("ade-zygote")
    plan = ZygotePlan.from_json(sys.argv[2])
    sys.path[:] = [*plan.paths, *(path for path in sys.path if path not in plan.paths)]
    line = _line()
    if not plan.cold:
        with fork_hooks.recording():
            _preload(plan.preload)
    fit = plan.cold or _is_fit_to_fork()
    job_process.prepare(plan)
    if "ade_engine.entry.cell" in sys.modules:
        with contextlib.suppress(Exception):  # without it jobs are only slower
            job_process.warm_up()
    gc.collect()
    gc.freeze()
    gc.disable()  # until a child runs a job's code: a collection would copy shared pages
    zygote_messages.send(line, Message(zygote_messages.HELLO if fit else zygote_messages.COLD))
    if fit:
        ForkServer(plan, line).serve()


def _line() -> socket.socket:
    os.set_inheritable(LINE, False)
    return socket.socket(fileno=LINE)


def _preload(modules: Iterable[str]) -> None:
    """Import these modules; a job that needs one that cannot be imported reports it itself."""
    for name in modules:
        before = set(sys.modules)
        try:
            importlib.import_module(name)
        except Exception as error:
            # A job must start the import anew instead of finding half of it.
            for partial in set(sys.modules) - before:
                del sys.modules[partial]
            sys.stderr.write(f"{name} was not imported: {type(error).__name__}\n")


def _is_fit_to_fork() -> bool:
    """Tell whether the imports left one thread and no open descriptors."""
    main = os.getpid()
    threads = {_name_of(thread) for thread in os.listdir("/proc/self/task") if int(thread) != main}
    opened = {int(name) for name in os.listdir("/proc/self/fd")}  # one of them is the listing's own
    return threads <= EXPENDABLE_THREADS and len(opened - {0, 1, 2, LINE}) <= 1


def _name_of(thread: str) -> str:
    with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
        return file.read().strip()


class ForkServer:
    """Fork children, and report how they end."""

    def __init__(self, plan: ZygotePlan, line: socket.socket) -> None:
        self._plan = plan
        self._line = line
        self._children: dict[int, tuple[int, int]] = {}
        self._poll = select.poll()
        self._poll.register(line.fileno(), select.POLLIN)

    def serve(self) -> None:
        """Work until the line is closed."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._children:
                    self._report(descriptor)
                elif not self._fork():
                    os._exit(0)

    def _fork(self) -> bool:
        """Serve one request for a child; return False when the line is closed."""
        received = zygote_messages.receive(self._line)
        if received is None:
            return False
        message, descriptors, _ = received
        number = message.number
        try:
            pid, pidfd = job_process.fork(self._plan, number, descriptors)
        except OSError as error:
            failed = Message(zygote_messages.NOT_SPAWNED, number, error.errno or 0)
            zygote_messages.send(self._line, failed)
        else:
            self._children[pidfd] = (pid, number)
            self._poll.register(pidfd, select.POLLIN)
            zygote_messages.send(self._line, Message(zygote_messages.SPAWNED, number), [pidfd])
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _report(self, pidfd: int) -> None:
        pid, number = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        ended = Message(
            zygote_messages.ENDED,
            number,
            status,
            round(usage.ru_utime * 1e6),
            round(usage.ru_stime * 1e6),
            usage.ru_maxrss,
        )
        zygote_messages.send(self._line, ended)


if __name__ == "__main__":
    main()
