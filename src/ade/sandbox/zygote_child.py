"""One forked process, as the worker holds it."""

import asyncio
import contextlib
import os
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade.sandbox.cgroup import MemoryGroup
from ade.sandbox.child_exit import ChildExit
from ade.sandbox.folders import holds_little, remove_tree


@dataclass(slots=True)
class Child:
    """Hold one forked process: it waits for its spec, runs it, and ends.

    Its zygote's client opens the pidfd, and closes it when the process has ended.
    """

    number: int
    stdout: int
    stderr: int
    line: socket.socket
    scratch: Path | None
    zygote: Any  # the `ZygoteClient` that it was requested from, which imports this module
    requested_ticks: int = 0
    folder: int = -1
    is_spawned: bool = False
    sent_ready: bool = False
    pidfd: int = -1
    pid: int = 0
    listener: int = -1
    group: MemoryGroup | None = None
    overdue: asyncio.TimerHandle | None = None
    ready: "asyncio.Future[None]" = field(default_factory=asyncio.Future)
    ended: "asyncio.Future[ChildExit]" = field(default_factory=asyncio.Future)

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.pidfd, number)

    @property
    def is_closed(self) -> bool:
        """Tell whether nobody waits for the process any more."""
        return self.line.fileno() < 0

    def close(self) -> None:
        """Close every descriptor that is still held, and remove the scratch folder later."""
        for name in ("stdout", "stderr", "listener"):
            if getattr(self, name) >= 0:
                os.close(self.release(name))
        if self.folder >= 0:
            folder = self.release("folder")
            if holds_little(folder):
                os.close(folder)
            else:  # in a thread: closing the last descriptor frees all files of the job
                asyncio.get_running_loop().run_in_executor(None, os.close, folder)
        if not self.is_closed:
            # A descriptor closed while it is watched would not be watched for its next owner.
            asyncio.get_running_loop().remove_reader(self.line)
            self.line.close()
        if self.scratch is not None:
            # In a thread: a job may have made deep folders.
            asyncio.get_running_loop().run_in_executor(None, remove_tree, self.scratch)
            self.scratch = None

    def release(self, name: str) -> int:
        """Pass the ownership of one descriptor to the caller."""
        descriptor: int = getattr(self, name)
        setattr(self, name, -1)
        return descriptor
