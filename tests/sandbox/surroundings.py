"""What a hostile job would like to reach, with sensors on all of it.

Servers on the machine, files beside the job's folder, a process of the worker's user, and a secret
in the worker's environment. `traces()` says what a job did to any of these.
"""

import asyncio
import contextlib
import os
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ade.sandbox.layers.seccomp import COLUMN
from ade.sandbox.layers.syscall_numbers import NUMBERS

SECRET_NAME = "ADE_TEST_SECRET"
PLACE = "/var/tmp"  # not /tmp: a job has one of its own, which would hide what is readable
SHARED_PLACES = ("/tmp", "/dev/shm", "/var/tmp")
SYSTEM_V = {"shm": "-M", "sem": "-S", "msg": "-Q"}  # and by which option a key of it is removed
# What other tests mount meanwhile: containers (`tests/containers`), and network namespaces.
MOUNTED_BY_OTHERS = re.compile(r"/ade-pod-|/run/netns(/|$)")
NOT_USED_BY_THE_WALLS = {"clone3": 435, "memfd_create": 319 if COLUMN == 0 else 279}


class Surroundings:
    """Hold what lies around the jobs of one driver."""

    def __init__(self) -> None:
        self.token = f"ade-token-{secrets.token_hex(6)}"
        self.ipc_key = secrets.randbelow(1 << 30) + 1
        self.secret = f"ade-secret-{secrets.token_hex(16)}"
        os.environ[SECRET_NAME] = self.secret
        self.folder = Path(tempfile.mkdtemp(prefix="ade-outside-", dir=PLACE))
        self.folder.chmod(0o755)
        self.outside = self.folder / "outside"
        self.readable = self.folder / "readable"
        self.kept = self.folder / "kept"
        self.touched: list[str] = []
        self._servers: list[Any] = []
        self._victim: subprocess.Popen[bytes] | None = None
        self._before: dict[str, Any] = {}

    async def __aenter__(self) -> "Surroundings":
        self._lay_out()
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        self._bury_victim()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what is there --------------------------------------------------------------------------

    def _lay_out(self) -> None:
        for folder, mode in ((self.outside, 0o777), (self.readable, 0o755), (self.kept, 0o700)):
            folder.mkdir()
            folder.chmod(mode)
        for path, text, mode in (
            (self.outside / "secret", self.secret, 0o644),
            (self.outside / "writable", "as it was", 0o666),
            (self.outside / "inner" / "file", "as it was", 0o666),
            (self.readable / "shared.py", "SHARED = 1\n", 0o644),
        ):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(mode)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()

        def touched(what: str) -> Any:
            async def served(reader: Any, writer: Any) -> None:
                self.touched.append(what)
                writer.close()

            return served

        tcp = await asyncio.start_server(touched("tcp"), "127.0.0.1", 0)
        self.tcp_port = tcp.sockets[0].getsockname()[1]
        self.unix_stream = str(self.readable / "stream.sock")
        self.unix_datagram = str(self.readable / "datagram.sock")
        unix = await asyncio.start_unix_server(touched("unix"), self.unix_stream)
        abstract = await asyncio.start_unix_server(touched("abstract"), f"\0{self.token}")
        udp, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self.touched, "udp"), ("127.0.0.1", 0)
        )
        self.udp_port = udp.get_extra_info("sockname")[1]
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        bound.setblocking(False)
        bound.bind(self.unix_datagram)
        datagram, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self.touched, "unix datagram"), sock=bound
        )
        for path in (self.unix_stream, self.unix_datagram):
            os.chmod(path, 0o777)
        self._servers += [tcp, unix, abstract, udp, datagram]

    def facts(self) -> dict[str, Any]:
        """Return the facts that a snippet gets: an attacker would find them out."""
        numbers = {name: both[COLUMN] for name, both in NUMBERS.items() if both[COLUMN] is not None}
        return {
            "token": self.token,
            "ipc_key": self.ipc_key,
            "outside": str(self.outside),
            "readable": str(self.readable),
            "tcp_port": self.tcp_port,
            "udp_port": self.udp_port,
            "unix_stream": self.unix_stream,
            "unix_datagram": self.unix_datagram,
            "worker_pid": os.getpid(),
            "victim_pid": self.victim.pid,
            "calls": NOT_USED_BY_THE_WALLS | numbers,
        }

    # --- the victim -----------------------------------------------------------------------------

    @property
    def victim(self) -> subprocess.Popen[bytes]:
        """Return a process of the worker's user that minds its own business."""
        if self._victim is None or self._victim.poll() is not None:
            self._victim = subprocess.Popen(["/bin/sleep", "3600"])
        return self._victim

    def _bury_victim(self) -> None:
        if self._victim is not None:
            self._victim.send_signal(signal.SIGCONT)
            self._victim.kill()
            self._victim.wait()
            self._victim = None

    def _victim_state(self) -> list[Any]:
        pid = self.victim.pid
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return [
            pid,
            "stopped" if fields[0] in "Tt" else "runs",
            os.getpriority(os.PRIO_PROCESS, pid),
            sorted(os.sched_getaffinity(pid)),
            [
                resource.prlimit(pid, limit)
                for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)
            ],
        ]

    # --- traces ---------------------------------------------------------------------------------

    def look(self) -> None:
        """Remember how everything is."""
        self.touched.clear()
        self._before = self._state()

    def traces(self) -> list[str]:
        """Say what has changed since the last look."""
        now = self._state()
        changed = [f"{name}: {now[name]}" for name in now if now[name] != self._before[name]]
        return [*(f"reached {what}" for what in self.touched), *changed]

    def _state(self) -> dict[str, Any]:
        return {
            "files": [_described(path) for path in sorted(self._watched())],
            "victim": self._victim_state(),
            "worker": [os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))],
            "hostname": socket.gethostname(),
            "mounts": _mounts(),
            "System V": [name for name in SYSTEM_V if self._is_kept(name)],
            "left files": sorted(self._named_by_token()),
            "left processes": sorted(self.processes_by_token()),
        }

    def _is_kept(self, name: str) -> bool:
        """Tell whether there is something of System V's by the key that is this driver's own."""
        try:
            rows = Path(f"/proc/sysvipc/{name}").read_text().splitlines()[1:]
        except OSError:
            return False
        return any(int(row.split()[0]) == self.ipc_key for row in rows)

    def _watched(self) -> list[Path]:
        return [path for place in (self.outside, self.readable) for path in place.rglob("*")]

    def _named_by_token(self) -> list[str]:
        found = []
        for place in SHARED_PLACES:
            with contextlib.suppress(OSError):
                found += [f"{place}/{name}" for name in os.listdir(place) if self.token in name]
        return found

    def processes_by_token(self) -> list[int]:
        """List the processes, anywhere on the machine, that carry this driver's token."""
        token, found = self.token.encode(), []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                if token in Path(f"/proc/{int(name)}/cmdline").read_bytes():
                    found.append(int(name))
        return found

    def put_right(self) -> None:
        """Undo what a control did, so that the next finds everything as it was."""
        for pid in self.processes_by_token():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for name in self._named_by_token():
            with contextlib.suppress(OSError):
                os.unlink(name)
        for name, option in SYSTEM_V.items():
            if self._is_kept(name):
                subprocess.run(["ipcrm", option, str(self.ipc_key)], check=True)
        self._bury_victim()
        for place in (self.outside, self.readable):
            for path in place.rglob("*"):
                if not path.is_socket() and not path.is_dir():
                    path.unlink(missing_ok=True)
        shutil.rmtree(self.outside)
        (self.readable / "shared.py").unlink(missing_ok=True)
        sockets = list(self.readable.iterdir())
        keep = self.readable.with_name("keep")
        self.readable.rename(keep)
        shutil.rmtree(self.kept, ignore_errors=True)
        self._lay_out()
        for path in sockets:
            (keep / path.name).rename(path)
        keep.rmdir()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, touched: list[str], what: str) -> None:
        self._touched, self._what = touched, what

    def datagram_received(self, data: bytes, address: Any) -> None:
        self._touched.append(self._what)


def _mounts() -> list[str]:
    """List where something is mounted, but for what other tests mount."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    places = [line.split(" ")[1] for line in lines]
    return sorted(place for place in places if not MOUNTED_BY_OTHERS.search(place))


def _described(path: Path) -> tuple[Any, ...]:
    facts = path.lstat()
    is_file = path.is_file() and not path.is_symlink() and facts.st_mode & 0o400
    content = path.read_bytes()[:200].decode(errors="replace") if is_file else ""
    attributes = [] if path.is_symlink() else os.listxattr(path)
    modified = 0 if path.is_dir() else facts.st_mtime_ns
    return (
        path.name,
        oct(facts.st_mode),
        facts.st_uid,
        facts.st_nlink,
        modified,
        content,
        attributes,
    )
