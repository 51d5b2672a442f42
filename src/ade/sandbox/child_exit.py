"""How a child ended: from the kernel where it says so, else as the zygote reports it."""

import fcntl
import os
import struct
from dataclasses import dataclass

from ade.sandbox.child.zygote_messages import Message
from ade.sandbox.process_identity import boot_ticks, ticks_to_ms

MEMORY_KB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
PIDFD_INFO = struct.Struct("=QQ11Ii")
PIDFD_GET_INFO = 0xC000FF0B | PIDFD_INFO.size << 16
PIDFD_INFO_EXIT = 1 << 3


@dataclass(slots=True)
class ChildExit:
    """Hold how a child ended."""

    status: int
    cpu_ms: int
    peak_kb: int


def plausible_exit(requested_ticks: int, status: int, message: Message) -> ChildExit:
    """Return how a child ended, with reported numbers replaced by 0 where they are not possible."""
    alive_ms = ticks_to_ms(boot_ticks() - requested_ticks + 1)
    cpu_ms = round((message.user_us + message.system_us) / 1000)
    return ChildExit(
        status,
        cpu_ms if cpu_ms <= alive_ms * (os.cpu_count() or 1) else 0,
        message.peak_kb if message.peak_kb <= MEMORY_KB else 0,
    )


def exit_status(pidfd: int, reported: int) -> int:
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
