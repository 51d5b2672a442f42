"""Two hosts in network namespaces, connected by one cable that can be cut.

Nothing of it is visible outside: the addresses exist inside only. Both share file system, processes
and host name with everything else. The names have the pid in them; the namespaces are removed at
the end, with what still runs in them.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

NEAR_ADDRESS, FAR_ADDRESS = "10.77.0.1", "10.77.0.2"
CLONE_NEWNET = 0x40000000


def why_none() -> str | None:
    """Say why there can be no namespaces here, if that is so."""
    if shutil.which("ip") is None:
        return "no network namespaces: iproute2 is missing (scripts/test-programs installs it)"
    name = f"ade-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        return "no network namespaces: this needs rights of root"
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return None


@dataclass(frozen=True)
class TwoHosts:
    """Name the namespaces of both hosts."""

    near: str
    far: str

    @property
    def at_far(self) -> list[str]:
        """Return what starts a command on the far host."""
        return ["ip", "netns", "exec", self.far]

    def cut_answers(self) -> None:
        """Let nothing get from the near host to the far one: requests arrive, answers do not."""
        _ip("-n", self.near, "route", "add", "blackhole", f"{FAR_ADDRESS}/32")

    def heal(self) -> None:
        """Connect them again."""
        _ip("-n", self.near, "route", "del", "blackhole", f"{FAR_ADDRESS}/32")

    def at_near(self, act: Callable[[], None]) -> None:
        """Call this on the near host, with all that it starts; its exception is raised here."""
        failures: list[BaseException] = []

        def inside() -> None:
            try:
                with open(f"/run/netns/{self.near}") as namespace:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setns(namespace.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                act()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]


@contextlib.contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    """Make the hosts while inside."""
    hosts = TwoHosts(f"ade-{os.getpid()}-near", f"ade-{os.getpid()}-far")
    try:
        for name in (hosts.near, hosts.far):
            _ip("netns", "add", name)
        cable = ("type", "veth", "peer", "name", "veth0", "netns", hosts.far)
        _ip("-n", hosts.near, "link", "add", "veth0", *cable)
        for name, address in ((hosts.near, NEAR_ADDRESS), (hosts.far, FAR_ADDRESS)):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "veth0")
            for link in ("lo", "veth0"):
                _ip("-n", name, "link", "set", link, "up")
        yield hosts
    finally:
        for name in (hosts.near, hosts.far):
            _remove(name)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr}")
    return done.stdout


def _remove(name: str) -> None:
    with contextlib.suppress(RuntimeError):
        for pid in _ip("netns", "pids", name).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _ip("netns", "del", name)
