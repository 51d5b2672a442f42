"""Ports that nothing listens on."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """Find free ports of this machine; another process may take one before it is used."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
