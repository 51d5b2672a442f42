"""Run one job in a subprocess without a sandbox.

The worker starts it as `python -I -B -m ade_engine.subprocess_child ENTRY FD`. The process reads
the request from stdin and sends the result to the descriptor FD; stdout and stderr belong to the
job. The process dies with its parent.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
from io import TextIOWrapper
from typing import Any, cast

from ade_engine.channel import ArtifactLimits
from ade_engine.run_entry import run_entry

PR_SET_PDEATHSIG = 1
MIB = 1024 * 1024


def main() -> int:
    """Read the request, run the entry module, end with its exit status."""
    entry, descriptor = sys.argv[1], int(sys.argv[2])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if _parent_is_gone(descriptor):
        return 1
    request: dict[str, Any] = json.load(sys.stdin)
    for output in (sys.stdout, sys.stderr):  # a line is read when it is printed, not at the end
        cast("TextIOWrapper", output).reconfigure(line_buffering=True)
    paths = request.get("paths", [])
    sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
    limits = request["limits"]
    kept = ArtifactLimits(limits["max_artifacts"], limits["artifact_mb"] * MIB)
    stream = os.fdopen(descriptor, "w", encoding="utf-8", closefd=False)
    _limit(limits)
    status = run_entry(entry, request["inputs"], stream, kept)
    os._exit(status)  # what Python does at its end was done with the job


def _parent_is_gone(descriptor: int) -> bool:
    """Tell whether the parent died before `prctl` asked the kernel to watch it."""
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
