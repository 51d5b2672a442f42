"""Time one case of one contestant in a fresh process, pinned to the measured core.

A fresh process for each run keeps event loops, caches and garbage of the contestants apart. It is
killed with all that it started when it takes too long or when the benchmark is interrupted, and
by the kernel when the benchmark itself is killed.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import postgres
from bench.cases import Case, Contestant, Sample, Sizes
from bench.pinning import MEASURED_CORE, pin

ROOT = Path(__file__).parent.parent
RUN_SECONDS_MAX = 300
MESSAGE_LINES_MAX = 3
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded before any fork


class RunFailed(Exception):
    """A run ended without a sample; the message holds the end of what it wrote."""


@dataclass(frozen=True)
class Run:
    """One timed run. The contestant is named as `module:Class`."""

    contestant: str
    url: str
    case: Case
    sizes: Sizes


def run_in_child(run: Run) -> Sample:
    command = [sys.executable, "-m", "bench.child", json.dumps(asdict(run))]
    process = start_group(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, complaint = process.communicate(timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"took longer than {RUN_SECONDS_MAX} s") from None
    finally:
        kill_group(process)
    if process.returncode:
        raise RunFailed("\n".join(complaint.splitlines()[-MESSAGE_LINES_MAX:]))
    answer = json.loads(output.splitlines()[-1])
    return Sample(answer["jobs"], answer["seconds"], tuple(answer["latencies_seconds"]))


def start_group(command: list[str], **options: object) -> subprocess.Popen[str]:
    """Start a process that leads its own group, so that all of it can be killed."""
    return subprocess.Popen(  # type: ignore[call-overload]
        command,
        cwd=ROOT,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, safe beside threads
        **options,
    )


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process with what it started. The group outlives its leader, so always ask."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def load(name: str) -> Any:
    """Import what `module:Class` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def perform(run: Run) -> Sample:
    """Prepare the scene and the backlog, then time the case."""
    contestant: Contestant = load(run.contestant)(run.url)
    jobs = run.sizes.jobs(run.case)
    if run.case.scene:
        contestant.arrange(run.case.scene)
    match run.case.operation:
        case "enqueue":
            return contestant.enqueue(jobs)
        case "bulk":
            return contestant.enqueue_bulk(jobs)
        case "pickup":
            return contestant.pickup(jobs)
        case "drain":
            contestant.fill(run.sizes.backlog)
            if contestant.database == "postgres":
                postgres.settle(run.url)
            return contestant.drain(jobs, run.case.batch, run.case.workers)


def main() -> None:
    pin(MEASURED_CORE)
    order = json.loads(sys.argv[1])
    order["case"], order["sizes"] = Case(**order["case"]), Sizes(**order["sizes"])
    print(json.dumps(asdict(perform(Run(**order)))))


if __name__ == "__main__":
    main()
