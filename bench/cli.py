"""How long `ade` takes to start: CPU time of whole processes, beside a bare interpreter.

Every round runs each command once, in turns, in a process of its own; the median is shown. CPU time
is that of the process and its children, so that other programs of the machine disturb it little.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ade.testing.server import running_server

ROUNDS = 15
ADE = str(Path(sys.executable).with_name("ade"))
BARE = "python -I -c pass"


@dataclass(frozen=True)
class Start:
    """A command, and how much CPU time it may take."""

    name: str
    command: Sequence[str]
    goal_ms: float | None = None


STARTS = (
    Start(BARE, [sys.executable, "-I", "-c", "pass"]),
    Start("import ade", [sys.executable, "-c", "import ade"], 60),
    Start(
        "from ade.client import Client",
        [sys.executable, "-c", "from ade.client import Client"],
        150,
    ),
    Start("import typer", [sys.executable, "-c", "import typer"]),
    Start("ade --help", [ADE, "--help"], 150),
    Start("ade version", [ADE, "version"]),
    Start("ade jobs --help", [ADE, "jobs", "--help"]),
    Start("import httpx", [sys.executable, "-c", "import httpx"]),
    Start("ade jobs", [ADE, "jobs"]),
    Start("ade jobs --json", [ADE, "jobs", "--json"]),
)


def cpu_ms(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Run a process to its end and return its CPU time; raise if it fails."""
    process = subprocess.Popen(
        command, env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    with process.stderr:
        complaint = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {complaint.decode()}")
    return (used.ru_utime + used.ru_stime) * 1000


def measure(rounds: int) -> dict[str, list[float]]:
    """Measure every start in turns, against a server that has a few jobs."""
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder), {}) as server:
        for number in range(20):
            server.wait(server.submit("echo", {"value": number}))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ADE_")}
        environ = clean | {"ADE_URL": server.url, "ADE_API_KEY": server.key, "HOME": folder}
        found: dict[str, list[float]] = {start.name: [] for start in STARTS}
        for number in range(rounds + 1):
            for start in STARTS:
                used = cpu_ms(start.command, environ)
                if number:  # the first round fills the caches of files
                    found[start.name].append(used)
    return found


def main() -> None:
    """Measure, and end with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    found = measure(parser.parse_args().rounds)
    bare = statistics.median(found[BARE])
    table = Table("start", "CPU ms", "least", "beyond bare", "times bare", "goal", box=None)
    missed = False
    for start in STARTS:
        median = statistics.median(found[start.name])
        verdict = ""
        if start.goal_ms is not None:
            met = median <= start.goal_ms
            missed = missed or not met
            verdict = f"{'met' if met else 'missed'} (at most {start.goal_ms:.0f})"
        figures = (median, min(found[start.name]), median - bare)
        table.add_row(
            start.name, *(f"{one:.0f}" for one in figures), f"{median / bare:.1f}", verdict
        )
    Console().print(table)
    sys.exit(missed)


if __name__ == "__main__":
    main()
