"""The worker's side of one zygote: launch it, request children, learn how they end.

The model: a zygote imports the packages of one environment, and one of them may have taken it over.
So nothing that comes from it is believed. A message is a hint about what to look at; what counts is
what the kernel says. The line carries LAUNCHED once (from the launcher, before it runs any package,
at level `full`), HELLO or COLD once, and for each request SPAWNED and then ENDED, or NOT_SPAWNED.
Whatever does not fit is a violation: the zygote is killed with all of its children, and their jobs
end with ZYGOTE_LOST, which is retried with another zygote.

The rule about time: every wait ends. A zygote has START_SECONDS_MAX to say HELLO, a child
READY_SECONDS_MAX to be ready, and a zygote END_SECONDS_MAX to report the end of a process whose end
the worker has seen on its own pidfd.

The line and the children's lines are socket pairs of this process, and a peer can learn a pidfd of
it from one (SO_PEERPIDFD, or SO_PASSPIDFD with each message). It would not help to create the pairs
in another process, because the sender of a message is known too, and at level `landlock` a zygote
can open a pidfd of any process. So the filter denies both options, and it does not matter if one is
found otherwise: no descriptor that comes back is used before it was verified.

| what comes | what happens |
| --- | --- |
| a message of another size, with too many descriptors, of an unknown kind or number | violation |
| a message of a process other than the zygote (SCM_CREDENTIALS) | violation |
| LAUNCHED with a pid that is no child of this process in a new namespace | violation |
| SPAWNED with anything but a pidfd of a new child of the zygote (`process_identity`) | violation |
| SPAWNED, ENDED or HELLO twice; ENDED before SPAWNED | violation |
| ENDED of a process that was not reaped; an exit status that there is not | violation |
| CPU time or memory that are not possible | they count as 0; what the supervisor measured counts |
| a folder or listener that is none of this child's (`received_descriptors`) | violation |
| no HELLO, no SPAWNED, no ENDED | killed when the time is over |
| no "ready" of a child | the child is killed when the time is over |
| a flood of messages | a few are read at a time; the first that does not fit ends it |
| a flood of error output | killed after STDERR_BYTES_TOTAL |
"""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import structlog

from ade.sandbox.child import zygote_messages
from ade.sandbox.child.apply_layers import READY
from ade.sandbox.child.plan import FULL, LANDLOCK, ZygotePlan
from ade.sandbox.child.zygote_messages import Malformed, Message
from ade.sandbox.child_exit import exit_status, plausible_exit
from ade.sandbox.folders import remove_tree
from ade.sandbox.process_identity import (
    Expected,
    Impostor,
    ProcessGone,
    boot_ticks,
    facts_of,
    has_ended,
    open_child,
    open_verified,
)
from ade.sandbox.received_descriptors import WrongDescriptor, check_folder, check_listener
from ade.sandbox.streams import BoundedOutput, PipeReader
from ade.sandbox.usage import share_kb
from ade.sandbox.zygote_child import Child
from ade.sandbox.zygote_launch import launch

log = structlog.get_logger()
START_SECONDS_MAX = 60.0
READY_SECONDS_MAX = 30.0
END_SECONDS_MAX = 10.0
STDERR_BYTES_MAX = 4096
STDERR_BYTES_TOTAL = 1 << 20
MESSAGES_AT_ONCE = 16


class ZygoteGone(Exception):
    """The zygote died or could not be started; its jobs did not finish."""


class ZygoteTooSlow(ZygoteGone):
    """The zygote did not start in time; another one would not either."""


class SetupFailed(Exception):
    """A child could not apply its layers; no code of the job was run."""


class Violation(Exception):
    """A message does not fit the protocol."""


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
        self._launched_ticks = boot_ticks()
        self._depth = len(facts_of(os.getpid()).pids) + 1
        with theirs:
            self._launched = self._launch(theirs.fileno())
        self._loop.add_reader(self._line, self._receive)
        self._deadline = self._loop.call_later(START_SECONDS_MAX, self._give_up)

    def _launch(self, line: int) -> int:
        launched, stderr = launch(self.plan, line)
        self._stderr_reader = PipeReader(stderr, self._take_stderr)
        return launched

    def _take_stderr(self, piece: bytes) -> None:
        self._stderr.take(piece)
        if self._stderr.taken_bytes > STDERR_BYTES_TOTAL:
            self._reject("it wrote too much to its error output")

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
        """Fork a child and wait until it is ready; it joins the cgroups of these descriptors.

        A process can move any process that it sees into a group that it holds open. At level `full`
        a zygote sees its own only, and its child joins by itself, which is fast. At level
        `landlock` it sees all, so the zygote gets no group, and the child is moved.
        """
        await asyncio.shield(self.started)
        joins_itself = self.plan.level == FULL
        child = self._request(groups if joins_itself else ())
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                await child.ready
            if groups and not joins_itself:
                await asyncio.to_thread(_move, child.pid, groups)
        except BaseException as error:
            child.signal(signal.SIGKILL)
            child.close()
            if isinstance(error, TimeoutError):
                if not child.is_spawned:
                    self._reject("it did not answer a request in time")
                raise SetupFailed("the child did not get ready in time") from None
            if isinstance(error, OSError):
                raise SetupFailed(f"the child did not join its group: {error}") from None
            raise
        return child

    def _request(self, groups: Sequence[int]) -> Child:
        if not self.is_alive:
            raise ZygoteGone("the zygote has died")
        self.forked += 1
        self.last_used = time.monotonic()
        number = self.forked
        scratch, folder = None, -1
        if self.plan.level == LANDLOCK:
            scratch, folder = self._scratch(number)
        stdout, their_stdout = os.pipe()
        stderr, their_stderr = os.pipe()
        line, their_line = socket.socketpair()
        line.setblocking(False)
        child = Child(number, stdout, stderr, line, scratch, self, boot_ticks(), folder)
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

    def _scratch(self, number: int) -> tuple[Path, int]:
        """Make the folder of a child, and open it: what is done to it is done to this descriptor.

        The zygote cannot rename the folder if it has a user of its own, because the folder above
        belongs to the worker. As the same user it can, and gains another folder of its own.
        """
        path = Path(self.plan.scratch, str(number))
        above = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.mkdir(path.name, 0o700, dir_fd=above)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = os.open(path.name, flags, dir_fd=above)
        finally:
            os.close(above)
        if self.plan.user != -1:
            os.fchown(folder, self.plan.user, self.plan.user)
        return path, folder

    def _receive_ready(self, child: Child) -> None:
        """Take the first message of a child: ready, with its folder and listener, or an error."""
        try:
            data, descriptors, flags, _ = socket.recv_fds(
                child.line, 1024, 2, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            data, descriptors, flags = b"", [], 0
        self._loop.remove_reader(child.line)
        if data == READY and descriptors and not flags & socket.MSG_CTRUNC:
            folder, *rest = descriptors
            child.listener = rest[0] if rest else -1
            if child.folder < 0:
                child.folder = folder
            else:  # it was made and opened here, and the child's descriptor is not needed
                os.close(folder)
            child.sent_ready = True
            self._see_if_ready(child)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        if not child.ready.done():
            error = data.decode(errors="replace").strip()
            child.ready.set_exception(SetupFailed(error or "the child ended before it was ready"))

    def _see_if_ready(self, child: Child) -> None:
        """Be ready after two messages: the child's own, and the zygote's, which tells its pid."""
        if not child.sent_ready or not child.pid or child.ready.done():
            return
        try:
            if child.listener >= 0:
                check_listener(child.listener)
            if self.plan.level == FULL and "mount" not in self.plan.without:
                check_folder(child.folder, child.pid, self.plan)
        except (WrongDescriptor, OSError) as error:
            if child.pidfd >= 0 and has_ended(child.pidfd):
                child.ready.set_exception(SetupFailed("the child ended before it was ready"))
            else:
                self._reject(str(error))
            return
        child.ready.set_result(None)

    # --- messages of the zygote -----------------------------------------------------------------

    def _receive(self) -> None:
        for _ in range(MESSAGES_AT_ONCE):  # the event loop serves others before it returns here
            if not self.is_alive:
                return
            try:
                received = zygote_messages.receive(self._line)
            except BlockingIOError:
                return
            except OSError:
                received = None
            except Malformed as error:
                self._reject(str(error))
                return
            if received is None:
                self.close()
                return
            self._take(*received)

    def _take(self, message: Message, descriptors: list[int], sender: int) -> None:
        """Take one message; no descriptor of it is kept."""
        try:
            self._apply(message, descriptors, sender)
        except (Violation, Impostor) as error:
            self._reject(str(error))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _apply(self, message: Message, descriptors: list[int], sender: int) -> None:
        kind = message.kind
        if len(descriptors) != (kind == zygote_messages.SPAWNED):
            raise Violation("a message has descriptors that it should not have, or none")
        if kind == zygote_messages.LAUNCHED:
            self._take_launched(message.number, sender)
        # The sender's pid comes from the kernel: any process in the sandbox could send a message.
        elif sender != (self.pid or self._launched):
            raise Violation("a message was sent by another process")
        elif kind in {zygote_messages.HELLO, zygote_messages.COLD}:
            self._begin(is_cold=kind == zygote_messages.COLD)
        elif (child := self._children.get(message.number)) is None:
            raise Violation("a message is about a child that was not requested, or has ended")
        elif kind == zygote_messages.SPAWNED:
            self._take_spawned(child, descriptors[0])
        elif kind == zygote_messages.NOT_SPAWNED and not child.is_spawned:
            del self._children[message.number]
            reason = os.strerror(message.status)
            _fail(child, SetupFailed(f"the child could not be forked: {reason}"))
        elif kind == zygote_messages.ENDED:
            self._take_ended(child, message)
        else:
            raise Violation("a message is of a kind that does not fit")

    def _take_launched(self, pid: int, sender: int) -> None:
        """Take the pid of the zygote from its launcher, if it is a child of this process."""
        if sender != self._launched or self.plan.level != FULL or self.pid:
            raise Violation("a launch was reported that was not expected")
        # Its user is not known yet: it may change to it later.
        self._check_own_child(pid, user=None)
        self.pid = pid

    def _check_own_child(self, pid: int, user: int | None) -> None:
        depth = self._depth if self.plan.level == FULL else None
        try:
            os.close(open_child(pid, Expected(os.getpid(), user, self._launched_ticks, depth)))
        except ProcessGone:
            raise Violation("the zygote is no child of this process") from None

    def _begin(self, *, is_cold: bool) -> None:
        if self.started.done() or (self.plan.level == FULL and not self.pid):
            raise Violation("it said hello twice, or before it was launched")
        self._check_own_child(self.pid or self._launched, self._user)
        self._deadline.cancel()
        self.pid = self.pid or self._launched
        if self._launched != self.pid and os.waitpid(self._launched, os.WNOHANG)[0]:
            self._launched = 0  # the launcher has cloned the zygote and ended
        self.is_cold = self.is_cold or is_cold
        self.memory_kb = share_kb(self.pid) or 0
        self.started.set_result(None)

    @property
    def _user(self) -> int:
        """Return the user that the zygote and its children must run as."""
        return os.geteuid() if self.plan.user == -1 else self.plan.user

    def _take_spawned(self, child: Child, hint: int) -> None:
        """Find the process that the zygote forked, and watch for its end."""
        if child.is_spawned:
            raise Violation("a child was forked twice")
        child.is_spawned = True
        has_own_namespace = self.plan.level == FULL and "pid" not in self.plan.without
        expected = Expected(
            parent=self.pid,
            user=self._user,
            since_ticks=child.requested_ticks,
            depth=self._depth + 1 if has_own_namespace else None,
            known_pids=frozenset(other.pid for other in self._children.values()),
        )
        try:
            child.pid, child.pidfd = open_verified(hint, expected)
        except ProcessGone:
            return  # the report of its end follows
        self._loop.add_reader(child.pidfd, self._see_end, child)
        if child.is_closed:  # who asked for it has given up
            child.signal(signal.SIGKILL)
        self._see_if_ready(child)

    def _see_end(self, child: Child) -> None:
        """Give the zygote a while to report an end that the kernel has reported."""
        self._loop.remove_reader(child.pidfd)
        reason = "it did not report the end of a child"
        child.overdue = self._loop.call_later(END_SECONDS_MAX, self._reject, reason)

    def _take_ended(self, child: Child, message: Message) -> None:
        """Take the end of a child, if it is over, and how it ended from the kernel if possible."""
        if not child.is_spawned:
            raise Violation("a child ended that was not forked")
        if child.pidfd >= 0 and not has_ended(child.pidfd):
            raise Violation("the end of a child was reported that lives")
        status = exit_status(child.pidfd, message.status)
        if not 0 <= status <= 0xFFFF or not (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            raise Violation("a child ended with an exit status that there is not")
        del self._children[child.number]
        self._release(child)
        if not child.ended.done():
            child.ended.set_result(plausible_exit(child.requested_ticks, status, message))

    def _release(self, child: Child) -> None:
        """Close the pidfd of a child, and stop waiting for the report of its end."""
        if child.overdue is not None:
            child.overdue.cancel()
        if child.pidfd >= 0:
            self._loop.remove_reader(child.pidfd)
            os.close(child.release("pidfd"))

    def _reject(self, reason: str) -> None:
        """Kill a zygote that does not keep to the protocol."""
        if self.is_alive:
            log.warning(
                "zygote killed: it broke the protocol",
                reason=reason,
                packages=self.plan.paths[:1],
                stderr=self._stderr.text()[-500:],
            )
            self.close(f"the zygote broke the protocol: {reason}")

    def _give_up(self) -> None:
        """Kill a zygote that takes too long to start."""
        if not self.started.done():
            seconds = f"{START_SECONDS_MAX:g} s"
            self.started.set_exception(ZygoteTooSlow(f"the zygote did not start in {seconds}"))
            self.started.exception()  # retrieved, so that asyncio does not log it
        self.close()

    def close(self, reason: str = "") -> None:
        """Kill the zygote and with it its children; tasks that wait for one get an exception."""
        if not self.is_alive:
            return
        self._deadline.cancel()
        self._loop.remove_reader(self._line)
        self._line.close()
        for pid in {self.pid, self._launched} - {0}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        error = ZygoteGone(reason or self._stderr.text().strip()[-500:] or "the zygote died")
        if not self.started.done():
            self.started.set_exception(error)
            self.started.exception()  # retrieved, so that asyncio does not log it
        for child in self._children.values():
            child.signal(signal.SIGKILL)
            self._release(child)
            _fail(child, error)
        self._children.clear()
        self.buried = self._loop.run_in_executor(None, self._reap)
        self.buried.add_done_callback(lambda _: self._stderr_reader.close())
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


def _move(pid: int, groups: Sequence[int]) -> None:
    """Move a process into cgroups; the kernel may take a dozen milliseconds for each."""
    for group in groups:
        os.write(group, b"%d" % pid)
