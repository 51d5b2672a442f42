"""What goes wrong: processes killed and frozen, clocks stepped, connections broken."""

import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
from tests.faketime import FakeClock, forget_dead_processes
from tests.faults.postgres import Postgres
from tests.proxy import Proxy
from tests.system.server import Process, Server

STEPS_SECONDS = (20, -20, 3600, -3600, 86_400)
# Long enough for leases to be lost, and for connections to be given up.
FAULT_SECONDS = (0.5, 8.0)
PAUSE_SECONDS = (0.2, 2.0)
FAULTS = ("kill", "freeze", "clock", "network", "restart", "notify")


@dataclass(frozen=True, slots=True)
class Fault:
    """Hold one fault: what was done to which process, and from when until when it may matter."""

    name: str
    pid: int
    began: float
    ended: float


@dataclass
class Member:
    """Hold one `ade` process with a clock and a way to the database of its own."""

    start: Callable[[], Process]
    process: Process
    proxy: Proxy
    clock: FakeClock
    busy: bool = field(default=False)

    @property
    def server(self) -> Server | None:
        """Return the process if it serves HTTP."""
        return self.process if isinstance(self.process, Server) else None


class Nemesis:
    """Do one thing after the other to the members, as a seed decides, and heal it again."""

    def __init__(
        self, members: list[Member], postgres: Postgres, seed: int, faults: tuple[str, ...]
    ) -> None:
        self.members = members
        self.history: list[Fault] = []
        self._postgres = postgres
        self._random = random.Random(seed)
        self._faults = faults
        self._healing: list[threading.Thread] = []

    def run(self, seconds: float, report: Callable[[str], None]) -> None:
        """Do harm for so long, then wait until everything is healed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            name = self._random.choice(self._faults)
            member = self._random.choice(self.members)
            lasting = self._random.uniform(*FAULT_SECONDS)
            choice = self._random.random()
            if not member.busy:
                report(f"{name} {member.process.pid}")
                getattr(self, f"_{name}")(member, lasting, choice)
            time.sleep(self._random.uniform(*PAUSE_SECONDS))
        for healing in self._healing:
            healing.join()

    def _note(self, name: str, member: Member, began: float) -> None:
        self.history.append(Fault(name, member.process.pid, began, time.monotonic()))

    def _until_healed(
        self, name: str, member: Member, seconds: float, heal: Callable[[], None]
    ) -> None:
        """Heal a fault after some time, beside other faults."""
        began = time.monotonic()
        member.busy = True

        def wait() -> None:
            time.sleep(seconds)
            heal()
            self._note(name, member, began)
            member.busy = False

        healing = threading.Thread(target=wait)
        healing.start()
        self._healing.append(healing)

    def _kill(self, member: Member, lasting: float, choice: float) -> None:
        began = time.monotonic()
        member.process.kill()
        self._note("kill", member, began)
        forget_dead_processes()
        member.process = member.start()

    def _freeze(self, member: Member, lasting: float, choice: float) -> None:
        process = member.process
        process.signal(signal.SIGSTOP)
        self._until_healed("freeze", member, lasting, lambda: process.signal(signal.SIGCONT))

    def _clock(self, member: Member, lasting: float, choice: float) -> None:
        member.clock.step(STEPS_SECONDS[int(choice * len(STEPS_SECONDS))])
        self._note("clock", member, time.monotonic())

    def _network(self, member: Member, lasting: float, choice: float) -> None:
        proxy = member.proxy
        faults = (
            proxy.silence_existing,
            proxy.silence_all,
            proxy.reset,
            proxy.refuse,
            lambda: setattr(proxy, "delay_seconds", 0.05 + choice / 4),
        )
        faults[int(choice * 997) % len(faults)]()
        self._until_healed("network", member, lasting, proxy.restore)

    def _restart(self, member: Member, lasting: float, choice: float) -> None:
        """Restart PostgreSQL as after a crash; every member feels it."""
        began = time.monotonic()
        self._postgres.stop()
        self._postgres.start()
        for touched in self.members:
            self._note("restart", touched, began)

    def _notify(self, member: Member, lasting: float, choice: float) -> None:
        """Send a notification that is not ADE's to every listener."""
        with psycopg.connect(self._postgres.url, autocommit=True) as connection:
            connection.execute("NOTIFY ade, 'nothing of yours {'")
