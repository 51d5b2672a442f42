"""Attempt a few forbidden actions, and report which succeeded; those are undone."""

import ctypes
import os
import socket
from collections.abc import Callable
from typing import Any

from ade_engine.channel import Channel

CLONE_NEWUSER = 0x10000000


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, bool]:
    """Attempt every action."""
    return try_all()


def try_all() -> dict[str, bool]:
    """Return whether each action succeeded."""
    return {name: _worked(harm) for name, harm in HARMS.items()}


def _worked(harm: Callable[[], object]) -> bool:
    try:
        harm()
    except (OSError, ValueError):
        return False
    return True


def _open_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()


def _open_local_socket() -> None:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).close()


def _turn_a_pair_around() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.close()
    theirs.close()


def _write_outside() -> None:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f".canary-{os.getpid()}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    os.unlink(path)


def _look_at_the_parent() -> None:
    with open(f"/proc/{os.getppid() or 'none'}/environ", "rb") as file:
        file.read(1)


def _enter_a_namespace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        os._exit(1 if libc.unshare(CLONE_NEWUSER) else 0)
    if os.waitpid(pid, 0)[1]:
        raise PermissionError


def _signal_the_parent() -> None:
    if os.getppid() == 0:
        raise ProcessLookupError
    os.kill(os.getppid(), 0)


HARMS: dict[str, Callable[[], object]] = {
    "open a socket": _open_socket,
    "open a local socket": _open_local_socket,
    "turn a pair of sockets around": _turn_a_pair_around,
    "write outside its folder": _write_outside,
    "look at its parent": _look_at_the_parent,
    "signal its parent": _signal_the_parent,
    "enter a namespace": _enter_a_namespace,
}
