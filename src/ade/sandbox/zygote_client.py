"""The worker's side of one zygote: launch it, request children, learn how they end."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade.sandbox.cgroup import MemoryGroup
from ade.sandbox.child import zygote_messages
from ade.sandbox.child.apply_layers import READY
from ade.sandbox.child.plan import FULL, LANDLOCK, ZygotePlan
from ade.sandbox.child.zygote_messages import Message
from ade.sandbox.folders import holds_little, remove_tree
from ade.sandbox.streams import BoundedOutput, PipeReader
from ade.sandbox.usage import read_facts, share_kb

LAUNCH = Path(__file__).parent / "child" / "launch.py"
START_SECONDS_MAX = 60.0
READY_SECONDS_MAX = 30.0
STDERR_BYTES_MAX = 4096
PIDFD_INFO = struct.Struct("=QQ11Ii")
PIDFD_GET_INFO = 0xC000FF0B | PIDFD_INFO.size << 16
PIDFD_INFO_EXIT = 1 << 3

# The worker's own environment variables do not enter the sandbox. Libraries get one thread, because
# jobs are many and processors are few, and a zygote must not have a second one.
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "POLARS_MAX_THREADS": "2",
    "_RJEM_MALLOC_CONF": "background_thread:false",  # the allocator of polars
    "MPLBACKEND": "agg",
}


class ZygoteGone(Exception):
    """The zygote died or could not be started; its jobs did not finish."""


class SetupFailed(Exception):
    """A child could not apply its layers; no code of the job was run."""


@dataclass(slots=True)
class ChildExit:
    """Hold how a child ended."""

    status: int
    cpu_ms: int
    peak_kb: int


@dataclass(slots=True)
class Child:
    """Hold one forked process: it waits for its spec, runs it, and ends."""

    number: int
    stdout: int
    stderr: int
    line: socket.socket
    scratch: Path | None
    zygote: "ZygoteClient"
    pidfd: int = -1
    pid: int = 0
    folder: int = -1
    listener: int = -1
    group: MemoryGroup | None = None
    ready: "asyncio.Future[None]" = field(default_factory=asyncio.Future)
    ended: "asyncio.Future[ChildExit]" = field(default_factory=asyncio.Future)

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.pidfd, number)

    def close(self) -> None:
        """Close every descriptor that is still held, and remove the scratch folder later."""
        for name in ("stdout", "stderr", "pidfd", "listener"):
            if getattr(self, name) >= 0:
                os.close(self.release(name))
        if self.folder >= 0:
            folder = self.release("folder")
            if holds_little(folder):
                os.close(folder)
            else:  # in a thread: closing the last descriptor frees all files of the job
                asyncio.get_running_loop().run_in_executor(None, os.close, folder)
        if self.line.fileno() >= 0:
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


class ZygoteClient:
    """Control one zygote; it can be used when `started` is done."""

    def __init__(self, plan: ZygotePlan, gone: Callable[["ZygoteClient"], None]) -> None:
        self.plan = plan
        self.is_cold = plan.cold
        self.forked = 0
        self.last_used = time.monotonic()
        self.pid = 0
        self.memory_kb = 0
        self._gone = gone
        self._children: dict[int, Child] = {}
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.buried: asyncio.Future[None] | None = None
        self._stderr = BoundedOutput(STDERR_BYTES_MAX)
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setblocking(False)
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            self._launched = self._launch(theirs.fileno())
        self._loop.add_reader(self._line, self._receive)
        self._deadline = self._loop.call_later(START_SECONDS_MAX, self.close)

    def _launch(self, line: int) -> int:
        """Start the launcher, from this thread: the zygote dies with the thread that started it."""
        stderr, theirs = os.pipe()
        argv = [sys.executable, "-I", "-B", str(LAUNCH), self.plan.source, self.plan.as_json()]
        try:
            launched = os.posix_spawn(
                sys.executable,
                argv,
                CLEAN_ENVIRONMENT,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, theirs, 2),
                    (os.POSIX_SPAWN_DUP2, line, 3),
                ],
                setsigdef=signal.valid_signals(),
                setsigmask=(),
            )
        except BaseException:
            os.close(stderr)
            raise
        finally:
            os.close(theirs)
        PipeReader(stderr, self._stderr.take)
        return launched

    @property
    def is_alive(self) -> bool:
        """Tell whether it can still fork children."""
        return self._line.fileno() >= 0

    @property
    def children(self) -> int:
        """Count the children that have not ended."""
        return len(self._children)

    # --- children -------------------------------------------------------------------------------

    async def spawn(self, groups: Sequence[int] = ()) -> Child:
        """Fork a child and wait until it is ready; it joins the cgroups of these descriptors."""
        await asyncio.shield(self.started)
        child = self._request(groups)
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                await child.ready
        except BaseException as error:
            child.signal(signal.SIGKILL)
            child.close()
            if isinstance(error, TimeoutError):
                raise SetupFailed("the child did not get ready in time") from None
            raise
        return child

    def _request(self, groups: Sequence[int]) -> Child:
        if not self.is_alive:
            raise ZygoteGone("the zygote has died")
        self.forked += 1
        self.last_used = time.monotonic()
        number = self.forked
        scratch = self._scratch(number) if self.plan.level == LANDLOCK else None
        stdout, their_stdout = os.pipe()
        stderr, their_stderr = os.pipe()
        line, their_line = socket.socketpair()
        line.setblocking(False)
        child = Child(number, stdout, stderr, line, scratch, self)
        child.ended.add_done_callback(_retrieve)
        child.ready.add_done_callback(_retrieve)
        self._children[number] = child
        self._loop.add_reader(line, self._receive_ready, child)
        try:
            message = Message(zygote_messages.SPAWN, number)
            theirs = [their_stdout, their_stderr, their_line.fileno()]
            zygote_messages.send(self._line, message, [*theirs, *groups])
        except OSError:
            self.close()
            child.close()
            raise ZygoteGone("the zygote has died") from None
        finally:
            os.close(their_stdout)
            os.close(their_stderr)
            their_line.close()
        return child

    def _scratch(self, number: int) -> Path:
        folder = Path(self.plan.scratch, str(number))
        folder.mkdir(mode=0o700)
        if self.plan.user != -1:
            os.chown(folder, self.plan.user, self.plan.user)
        return folder

    def _receive_ready(self, child: Child) -> None:
        """Take the first message of a child: ready, with its folder and listener, or an error."""
        try:
            data, descriptors, _, _ = socket.recv_fds(child.line, 1024, 2, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._loop.remove_reader(child.line)
        if data == READY and descriptors:
            child.folder, *rest = descriptors
            child.listener = rest[0] if rest else -1
            self._see_if_ready(child)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        if not child.ready.done():
            error = data.decode(errors="replace").strip()
            child.ready.set_exception(SetupFailed(error or "the child ended before it was ready"))

    def _see_if_ready(self, child: Child) -> None:
        """Be ready after two messages: the child's own, and the zygote's, which carries its pid."""
        if child.folder >= 0 and child.pid and not child.ready.done():
            child.ready.set_result(None)

    # --- messages of the zygote -----------------------------------------------------------------

    def _receive(self) -> None:
        while self.is_alive:
            try:
                received = zygote_messages.receive(self._line)
            except BlockingIOError:
                return
            except OSError:
                received = None
            if received is None:
                self.close()
                return
            self._take(*received)

    def _take(self, message: Message, descriptors: list[int], sender: int) -> None:
        child = self._children.get(message.number)
        # The sender's pid comes from the kernel: any process in the sandbox could send a message.
        if message.kind == zygote_messages.LAUNCHED:
            if sender == self._launched and self.plan.level == FULL and not self.pid:
                self.pid = message.number
        elif message.kind in {zygote_messages.HELLO, zygote_messages.COLD}:
            if sender == (self.pid or self._launched):
                self._begin(is_cold=message.kind == zygote_messages.COLD)
        elif child is None:
            pass
        elif message.kind == zygote_messages.SPAWNED and descriptors and child.pidfd < 0:
            child.pidfd = descriptors.pop(0)
            child.pid = _pid_of(child.pidfd)
            self._see_if_ready(child)
        elif message.kind == zygote_messages.NOT_SPAWNED:
            del self._children[message.number]
            reason = os.strerror(message.status)
            _fail(child, SetupFailed(f"the child could not be forked: {reason}"))
        elif message.kind == zygote_messages.ENDED:
            del self._children[message.number]
            cpu_ms = round((message.user_us + message.system_us) / 1000)
            if not child.ended.done():
                status = _exit_status(child.pidfd, message.status)
                child.ended.set_result(ChildExit(status, cpu_ms, message.peak_kb))
        for descriptor in descriptors:
            os.close(descriptor)

    def _begin(self, *, is_cold: bool) -> None:
        self._deadline.cancel()
        self.pid = self.pid or self._launched
        if self._launched != self.pid and os.waitpid(self._launched, os.WNOHANG)[0]:
            self._launched = 0  # the launcher has cloned the zygote and ended
        self.is_cold = self.is_cold or is_cold
        self.memory_kb = share_kb(self.pid) or 0
        if not self.started.done():
            self.started.set_result(None)

    def close(self) -> None:
        """Kill the zygote and with it its children; tasks that wait for one get an exception."""
        if not self.is_alive:
            return
        self._deadline.cancel()
        self._loop.remove_reader(self._line)
        self._line.close()
        for pid in {self.pid, self._launched} - {0}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        error = ZygoteGone(self._stderr.text().strip()[-500:] or "the zygote died")
        if not self.started.done():
            self.started.set_exception(error)
            self.started.exception()  # retrieved, so that asyncio does not log it
        for child in self._children.values():
            child.signal(signal.SIGKILL)
            _fail(child, error)
        self._children.clear()
        self.buried = self._loop.run_in_executor(None, self._reap)
        self._gone(self)

    def _reap(self) -> None:
        """Wait until the processes are gone, and remove the scratch folder."""
        for pid in {self.pid, self._launched} - {0}:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        if self.plan.scratch:
            remove_tree(Path(self.plan.scratch))


def _retrieve(future: "asyncio.Future[Any]") -> None:
    """Retrieve a future's exception, so that asyncio does not log it as never retrieved."""
    if not future.cancelled():
        future.exception()


def _fail(child: Child, error: Exception) -> None:
    for future in (child.ready, child.ended):
        if not future.done():
            future.set_exception(error)


def _pid_of(pidfd: int) -> int:
    """Return the process's pid in this process's namespace."""
    _, _, behind = read_facts(f"/proc/self/fdinfo/{pidfd}").partition(b"\nPid:")
    return int(behind.split(b"\n", 1)[0] or 0)


def _exit_status(pidfd: int, reported: int) -> int:
    """Return how a process ended, from the kernel; before Linux 6.15, as the zygote reported it.

    A zygote has imported the packages of one environment. Should one of them have taken it over,
    it can lie on old kernels only, and about jobs of that environment only.
    """
    if pidfd < 0:
        return reported
    info = bytearray(PIDFD_INFO.pack(PIDFD_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
    except OSError:
        return reported
    known, *_, status = PIDFD_INFO.unpack(info)
    return int(status) if known & PIDFD_INFO_EXIT else reported
