"""Become a program that dies with its parent: `python -I -S die_with_parent.py PID PROGRAM ...`.

A server that is killed cannot end the processes that it started. The kernel can, if it was told
before.
"""

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1
NICE = 5
FILE_BYTES_MAX = 8 * 1024**3


def main() -> None:
    """Ask the kernel for a signal at the parent's death, lower the priority, become the program."""
    parent = int(sys.argv[1])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent process has ended")
    os.nice(NICE)
    os.umask(0o022)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = FILE_BYTES_MAX if hard == resource.RLIM_INFINITY else min(FILE_BYTES_MAX, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
