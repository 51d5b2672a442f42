"""Messages between the worker and a zygote: fixed numbers, with descriptors beside them.

A zygote reads numbers only and never a byte of a job, so no data of one job can be found in the
memory that the next job is forked from.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELDS = struct.Struct("=IiQQQQ")
LAUNCHED, HELLO, COLD, SPAWN, SPAWNED, NOT_SPAWNED, ENDED = range(1, 8)
DESCRIPTORS_MAX = 8
CREDENTIALS = struct.Struct("3i")


class Malformed(Exception):
    """A message has another size than all messages, or more descriptors than any."""


class Message(NamedTuple):
    """Hold one message; `number` counts the children in the order of the requests."""

    kind: int
    number: int = 0
    status: int = 0
    user_us: int = 0
    system_us: int = 0
    peak_kb: int = 0

    def pack(self) -> bytes:
        """Return the message as bytes."""
        return _FIELDS.pack(
            self.kind, self.status, self.number, self.user_us, self.system_us, self.peak_kb
        )


def send(line: socket.socket, message: Message, descriptors: Iterable[int] = ()) -> None:
    """Send a message, with descriptors."""
    socket.send_fds(line, [message.pack()], list(descriptors))


def receive(line: socket.socket) -> tuple[Message, list[int], int] | None:
    """Receive (message, descriptors, pid of the sender); None when the line is closed.

    The pid is the kernel's (SCM_CREDENTIALS), and 0 unless the socket was set to receive it. A
    message that is malformed raises Malformed, and its descriptors are closed.
    """
    room = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX) + socket.CMSG_SPACE(CREDENTIALS.size)
    data, extra, flags, _ = line.recvmsg(_FIELDS.size, room, socket.MSG_CMSG_CLOEXEC)
    descriptors, sender = array.array("i"), 0
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
        elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            sender = CREDENTIALS.unpack(content)[0]
    is_whole = len(data) == _FIELDS.size and not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
    if not is_whole:
        for descriptor in descriptors:
            os.close(descriptor)
        if data or descriptors:
            raise Malformed("a message has another size, or too many descriptors")
        return None
    kind, status, number, user_us, system_us, peak_kb = _FIELDS.unpack(data)
    return Message(kind, number, status, user_us, system_us, peak_kb), list(descriptors), sender
