"""What a zygote sends when a package has taken it over: imported in the zygote, by its preload.

The honest zygote goes on behind it: children are forked and layers are applied. Only what is sent
to the worker differs, by the behaviour whose name the test puts in the place of `BEHAVIOUR`.
"""

import os
import signal
import socket
import struct
import sys
import time

from ade.sandbox.child import zygote_messages
from ade.sandbox.child.apply_layers import LayerSetup
from ade.sandbox.child.zygote_messages import ENDED, HELLO, LAUNCHED, NOT_SPAWNED, SPAWNED, Message

BEHAVIOUR = "honest"
FLOOD = 200_000
READY_LINE = 3
honest_send = zygote_messages.send
honest_receive = zygote_messages.receive
kept: list[int] = []
honest_ready = LayerSetup.report_ready


def raw(line, data, descriptors=()):
    """Send bytes that need not be a message."""
    socket.send_fds(line, [data], list(descriptors))


def null(count=1):
    """Open so many descriptors."""
    return [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]


def sleeper():
    """Fork a process that only sleeps; return its pid."""
    pid = os.fork()
    if not pid:
        time.sleep(60)
        os._exit(0)
    return pid


# --- instead of the hello ------------------------------------------------------------------------


def hello_garbage(line, message):
    raw(line, b"garbage")


def hello_empty(line, message):
    raw(line, b"")


def hello_too_long(line, message):
    raw(line, message.pack() * 50)


def hello_unknown_kind(line, message):
    honest_send(line, Message(99))


def hello_huge_kind(line, message):
    raw(line, b"\xff" * len(message.pack()))


def hello_twice(line, message):
    honest_send(line, message)
    honest_send(line, message)


def hello_with_descriptor(line, message):
    honest_send(line, message, null())


def hello_with_many_descriptors(line, message):
    honest_send(line, message, null(60))


def hello_garbage_with_descriptors(line, message):
    raw(line, b"x", null(8))


def hello_launched(line, message):
    honest_send(line, Message(LAUNCHED, 1))


def hello_of_another(line, message):
    if not os.fork():
        honest_send(line, message)
        os._exit(0)
    time.sleep(60)


def hello_never(line, message):
    time.sleep(60)


def hello_flood(line, message):
    for _ in range(FLOOD):
        honest_send(line, message)


def hello_flood_of_descriptors(line, message):
    for _ in range(FLOOD):
        honest_send(line, Message(SPAWNED, 1), null(1))


def hello_flood_of_errors(line, message):
    for _ in range(FLOOD):
        os.write(2, b"e" * 65536)


# --- instead of the report of a fork -------------------------------------------------------------


def spawned_never(line, message, descriptors):
    pass


def spawned_without_descriptor(line, message, descriptors):
    honest_send(line, message)


def spawned_with_two(line, message, descriptors):
    honest_send(line, message, [*descriptors, *null()])


def spawned_with_file(line, message, descriptors):
    honest_send(line, message, null())


def spawned_with_pipe(line, message, descriptors):
    honest_send(line, message, os.pipe()[:1])


def spawned_with_folder_of_process(line, message, descriptors):
    honest_send(line, message, [os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)])


def spawned_with_zygote(line, message, descriptors):
    honest_send(line, message, [os.pidfd_open(os.getpid())])


def spawned_with_old_process(line, message, descriptors):
    honest_send(line, message, [os.pidfd_open(old_process)])


def spawned_with_grandchild(line, message, descriptors):
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, struct.pack("i", os.pidfd_open(pid := sleeper()) and pid))
        time.sleep(60)
    (pid,) = struct.unpack("i", os.read(reader, 4))
    honest_send(line, message, [os.pidfd_open(pid)])


def spawned_twice(line, message, descriptors):
    honest_send(line, message, descriptors)
    honest_send(line, message, descriptors)


def spawned_of_unknown_number(line, message, descriptors):
    honest_send(line, Message(SPAWNED, 1 << 63), descriptors)


def spawned_and_not_spawned(line, message, descriptors):
    honest_send(line, message, descriptors)
    honest_send(line, Message(NOT_SPAWNED, message.number, 1))


def spawned_after_ended(line, message, descriptors):
    honest_send(line, Message(ENDED, message.number))


def spawned_and_ended_alive(line, message, descriptors):
    honest_send(line, message, descriptors)
    honest_send(line, Message(ENDED, message.number))


def spawned_flood(line, message, descriptors):
    for number in range(FLOOD):
        honest_send(line, Message(ENDED, number + 1000))


def spawned_and_stopped(line, message, descriptors):
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)


# --- instead of the report of an end -------------------------------------------------------------


def ended_never(line, message):
    pass


def ended_twice(line, message):
    honest_send(line, message)
    honest_send(line, message)


def ended_with_huge_numbers(line, message):
    most = (1 << 64) - 1
    honest_send(line, Message(ENDED, message.number, message.status, most, most, most))


# --- instead of a child's report that it is ready ------------------------------------------------


def ready_with(*descriptors, data=b"R"):
    with socket.socket(fileno=os.dup(READY_LINE)) as line:
        socket.send_fds(line, [data], list(descriptors))


def ready_never(setup):
    time.sleep(60)


def ready_garbage(setup):
    ready_with(data=b"\xff" * 500)


def ready_without_folder(setup):
    ready_with()


def ready_with_file(setup):
    ready_with(os.open("/dev/null", os.O_RDONLY))


def ready_with_root(setup):
    ready_with(os.open("/", os.O_PATH | os.O_DIRECTORY))


def ready_with_another_tmpfs(setup):
    ready_with(os.open("/dev/shm", os.O_RDONLY | os.O_DIRECTORY))


def ready_with_false_listener(setup):
    ready_with(os.open(".", os.O_RDONLY | os.O_DIRECTORY), os.pipe()[0])


def ready_with_many(setup):
    ready_with(os.open(".", os.O_RDONLY | os.O_DIRECTORY), *null(50))


def ready_and_deaf(setup):
    """Be ready, and never read the spec; the zygote holds the line open meanwhile."""
    honest_ready(setup)
    time.sleep(60)


def receive(line):
    """Receive a request, and keep what comes with it."""
    received = honest_receive(line)
    kept.extend(map(os.dup, received[1] if received else ()))
    return received


def send(line, message, descriptors=()):
    """Send a message as the behaviour wants it."""
    behave = globals()[BEHAVIOUR]
    if BEHAVIOUR.startswith("hello") and message.kind == HELLO:
        behave(line, message)
    elif BEHAVIOUR.startswith("spawned") and message.kind == SPAWNED:
        behave(line, message, descriptors)
    elif BEHAVIOUR.startswith("ended") and message.kind == ENDED:
        behave(line, message)
    else:
        honest_send(line, message, descriptors)


old_process = sleeper() if BEHAVIOUR == "spawned_with_old_process" else 0
if __name__ in sys.modules and BEHAVIOUR in globals():
    zygote_messages.send = send
    if BEHAVIOUR == "ready_and_deaf":
        zygote_messages.receive = receive
    if BEHAVIOUR.startswith("ready"):
        LayerSetup.report_ready = globals()[BEHAVIOUR]  # type: ignore[method-assign]
