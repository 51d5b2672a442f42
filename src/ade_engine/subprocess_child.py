"""Run one job in a process of its own: `python -I -B -m ade_engine.subprocess_child ENTRY FD`.

The request comes on stdin, the result goes to the descriptor FD; stdout and stderr are the job's
own. The process dies with the one that started it.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
from typing import Any

from ade_engine.run_entry import run_entry

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Read the request, run the entry's `main(inputs, channel)`, send what it returns."""
    entry, descriptor = sys.argv[1], int(sys.argv[2])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if _nobody_listens(descriptor):
        return 1
    request: dict[str, Any] = json.load(sys.stdin)
    paths = request.get("paths", [])
    sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        _limit(request["limits"])
        return run_entry(entry, request["inputs"], stream)


def _nobody_listens(descriptor: int) -> bool:
    """Tell whether the one who started this died before the kernel was asked to watch it."""
    channel = select.poll()
    channel.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in channel.poll(0))


def _limit(limits: dict[str, int]) -> None:
    cpu_seconds = max(1, -(-limits["cpu_ms"] // 1000))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    file_bytes = limits["file_mb"] * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


if __name__ == "__main__":
    sys.exit(main())
