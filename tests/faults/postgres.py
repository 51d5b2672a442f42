"""A PostgreSQL server that a test may stop, start and freeze."""

import contextlib
import os
import signal
from typing import Any

from tests.processes import children_of, eventually, is_alive


class Postgres:
    """Hold one server and its processes."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.url: str = server.get_uri()
        self._frozen: set[int] = set()

    @property
    def pid(self) -> int:
        """Return the process that owns all others."""
        return int(self.server.get_pid())

    def stop(self) -> None:
        """Stop at once, as a crash would: connections break, nothing is put in order."""
        os.kill(self.pid, signal.SIGQUIT)
        eventually(lambda: not is_alive(self.pid))

    def start(self) -> None:
        """Start again; harmless if it runs."""
        if not is_alive(self.pid):
            self.server.ensure_postgres_running()

    def freeze(self) -> None:
        """Stop answering without breaking a connection, as a lost network would."""
        self._frozen = {self.pid}
        os.kill(self.pid, signal.SIGSTOP)
        for child in children_of(self.pid):
            self._frozen.add(child)
            os.kill(child, signal.SIGSTOP)

    def thaw(self) -> None:
        """Answer again."""
        for pid in self._frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._frozen = set()
