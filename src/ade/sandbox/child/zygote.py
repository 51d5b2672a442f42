"""Import once, fork often: `python -I -B zygote.py SOURCE PLAN`, the line on descriptor 3.

The loop has no threads and allocates next to nothing. It reads fixed words from its line, forks,
reports the ends of its children, and dies when the line closes.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys

if __name__ == "__main__":  # run by its path, by the environment's interpreter
    sys.path.insert(0, sys.argv[1])

from ade.sandbox.child import fork_hooks, job_process, zygote_messages
from ade.sandbox.child.plan import Plan
from ade.sandbox.layers import linux

LINE = 3
# Threads that may be left behind by a fork, by name: known to sleep, to hold nothing while they do,
# and not to be missed. polars has one that deletes spilled files, which a job's end does anyway.
NOT_MISSED = {"polars-ooc-clea"}


def main():
    """Import what the plan names, then fork on demand."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    linux.set_name("ade-zygote")
    plan = Plan.from_json(sys.argv[2])
    sys.path[:] = [*plan.paths, *(path for path in sys.path if path not in plan.paths)]
    line = _line()
    if not plan.cold:
        with fork_hooks.noting():
            _preload(plan.preload)
    fit = plan.cold or _is_fit_to_fork()
    job_process.prepare(plan)
    if "ade_engine.entry.cell" in sys.modules:
        with contextlib.suppress(Exception):  # jobs are only slower without it
            job_process.rehearse()
    gc.collect()
    gc.freeze()
    gc.disable()  # until a child runs somebody's code: a collection would copy what is shared
    zygote_messages.send(
        line, zygote_messages.Message(zygote_messages.HELLO if fit else zygote_messages.COLD)
    )
    if fit:
        ForkServer(plan, line).serve()


def _line():
    os.set_inheritable(LINE, False)
    return socket.socket(fileno=LINE)


def _preload(modules):
    """Import what the environment has of these; a job that needs the rest says so itself."""
    for name in modules:
        before = set(sys.modules)
        try:
            importlib.import_module(name)
        except Exception as error:
            # A job shall begin the import anew, and not find the half of it.
            for half in set(sys.modules) - before:
                del sys.modules[half]
            sys.stderr.write(f"{name} was not imported: {type(error).__name__}\n")


def _is_fit_to_fork():
    """Tell whether the imports left one thread and no descriptors behind."""
    main = os.getpid()
    threads = {_name_of(thread) for thread in os.listdir("/proc/self/task") if int(thread) != main}
    opened = {int(name) for name in os.listdir("/proc/self/fd")}  # the listing's own is among them
    return threads <= NOT_MISSED and len(opened - {0, 1, 2, LINE}) <= 1


def _name_of(thread):
    with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
        return file.read().strip()


class ForkServer:
    """Fork children, and tell how they end."""

    def __init__(self, plan, line):
        self._plan = plan
        self._line = line
        self._children = {}
        self._poll = select.poll()
        self._poll.register(line.fileno(), select.POLLIN)

    def serve(self):
        """Work until the line closes."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._children:
                    self._report(descriptor)
                elif not self._obey():
                    os._exit(0)

    def _obey(self):
        received = zygote_messages.receive(self._line)
        if received is None:
            return False
        message, descriptors, _ = received
        try:
            pid, pidfd = job_process.fork(self._plan, message.number, descriptors)
        except OSError as error:
            failed = zygote_messages.Message(
                zygote_messages.NOT_SPAWNED, message.number, error.errno or 0
            )
            zygote_messages.send(self._line, failed)
        else:
            self._children[pidfd] = (pid, message.number)
            self._poll.register(pidfd, select.POLLIN)
            zygote_messages.send(
                self._line,
                zygote_messages.Message(zygote_messages.SPAWNED, message.number),
                [pidfd],
            )
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _report(self, pidfd):
        pid, number = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        ended = zygote_messages.Message(
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
