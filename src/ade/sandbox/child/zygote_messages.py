"""What worker and zygote tell each other: fixed words, and descriptors beside them.

A zygote reads numbers only, never a byte of a job, so nothing of one job can be found in the
memory that the next is forked from.
"""

import array
import socket
import struct
from typing import NamedTuple

_WORDS = struct.Struct("=IiQQQQ")
LAUNCHED, HELLO, COLD, SPAWN, SPAWNED, NOT_SPAWNED, ENDED = range(1, 8)
DESCRIPTORS_MAX = 8
CREDENTIALS = struct.Struct("3i")


class Message(NamedTuple):
    """Hold one message; `number` is the child's, in the order in which they were asked for."""

    kind: int
    number: int = 0
    status: int = 0
    user_us: int = 0
    system_us: int = 0
    peak_kb: int = 0

    def pack(self):
        """Return the message as bytes."""
        words = (self.kind, self.status, self.number, self.user_us, self.system_us, self.peak_kb)
        return _WORDS.pack(*words)


def send(line, message, descriptors=()):
    """Send a message, with descriptors."""
    socket.send_fds(line, [message.pack()], list(descriptors))


def receive(line):
    """Receive (message, descriptors, pid of the sender if asked for); None at the end."""
    room = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX) + socket.CMSG_SPACE(CREDENTIALS.size)
    data, extra, _, _ = line.recvmsg(_WORDS.size, room, socket.MSG_CMSG_CLOEXEC)
    if len(data) < _WORDS.size:
        return None
    descriptors, sender = array.array("i"), 0
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
        elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            sender = CREDENTIALS.unpack(content)[0]
    kind, status, number, user_us, system_us, peak_kb = _WORDS.unpack(data)
    return Message(kind, number, status, user_us, system_us, peak_kb), list(descriptors), sender
