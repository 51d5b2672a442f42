"""Watch from outside which jobs really run: the processes, not what the database says of them."""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.processes import is_alive, name_of

LOOK_SECONDS = 0.05
TOKEN = "token"
# The code of every job: leave a token where the watch can read it, take some time, return it.
SOURCE = f"""
import pathlib, time
def main(token, seconds):
    pathlib.Path("{TOKEN}").write_text(token)
    time.sleep(seconds)
    return token
"""


@dataclass(frozen=True, slots=True)
class Running:
    """Hold one process that runs a job, and the `ade` process that it belongs to."""

    token: str
    pid: int
    holder: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Hold two processes that ran one job at the same moment."""

    token: str
    holders: frozenset[int]
    at: float


class Watch(threading.Thread):
    """Look at the processes of the machine again and again, for two that run the same job."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.overlaps: list[Overlap] = []
        self.seen: set[Running] = set()
        self.looks = 0
        self._known: dict[tuple[int, str], Running] = {}
        self._folder = str(folder)
        self._over = threading.Event()

    def stop(self) -> None:
        """Stop looking."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look until stopped."""
        while not self._over.wait(LOOK_SECONDS):
            self.looks += 1
            now = time.monotonic()
            by_token: dict[str, list[Running]] = {}
            for running in self._look():
                by_token.setdefault(running.token, []).append(running)
            for token, found in by_token.items():
                still = [running for running in found if is_alive(running.pid)]
                if len(still) > 1:
                    holders = frozenset(running.holder for running in still)
                    self.overlaps.append(Overlap(token, holders, now))

    def _look(self) -> list[Running]:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        found = [self._running(pid) for pid in pids if name_of(pid) == "ade-job"]
        known = [running for running in found if running is not None]
        self.seen.update(known)
        return known

    def _running(self, pid: int) -> Running | None:
        """Read whose job a process runs; a process that has just begun may not have said so."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if stat[0] in "ZX":
                return None
            born = stat[19]
            if (pid, born) in self._known:
                return self._known[pid, born]
            token = Path(f"/proc/{pid}/cwd/{TOKEN}").read_text()
        except OSError:
            return None
        if not token:
            return None
        running = Running(token, pid, self._holder(pid))
        self._known[pid, born] = running
        return running

    def _holder(self, pid: int) -> int:
        """Walk up to the `ade` process that started a job."""
        while pid > 1:
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                break
            parent = int(stat[1])
            if not name_of(parent).startswith("ade-"):
                return parent
            pid = parent
        return 0
