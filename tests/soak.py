"""Run one server under load for a long time and see what grows.

A long run, not a test of any tier: `scripts/soak [--minutes 60] [--database sqlite|postgresql]`.
Jobs (echoes and sandboxed cells) come in at an even rate while twenty readers follow event streams.
Every few seconds the run measures what a leak would show in: memory, descriptors, threads, the
write-ahead log, temporary files, control groups and mounts. At the end it prints the slope of
each, and it exits with 1 if one of them is not flat.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table
from tests import databases
from tests.processes import tree
from tests.system.cells import cell
from tests.system.server import JOBS, Server, echo, starting

READERS = 20
SUBMITTERS = 4
LOOK_SECONDS = 5.0
# The first part warms caches, zygotes and allocators up; only what follows is judged.
WARM_UP_SHARE = 0.25
SETTINGS = {"ADE_QUEUE_SIZE": 0, "ADE_MAX_CONCURRENCY": 2}
SOURCE = "import math\ndef main(n):\n    print('computing', n)\n    return math.sqrt(n)\n"
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Measure:
    """Name what is measured, and how much of it may be added in an hour."""

    name: str
    growth_per_hour_max: float
    read: Callable[[Server, Path], float]


def _status(pid: int, field: str) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return float(text.partition(f"{field}:")[2].split(maxsplit=1)[0])


def _server_mib(server: Server, data: Path) -> float:
    return _status(server.pid, "RssAnon") / 1024


def _below_mib(server: Server, data: Path) -> float:
    """Sum what waits below the server for jobs: the zygotes, and children that are ready."""
    total = 0.0
    for pid in tree(server.pid):
        with suppress(OSError, IndexError, ValueError):  # it may have ended meanwhile
            total += _status(pid, "RssAnon") / 1024
    return total


def _descriptors(server: Server, data: Path) -> float:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def _threads(server: Server, data: Path) -> float:
    return _status(server.pid, "Threads")


def _mounts(server: Server, data: Path) -> float:
    return len(Path(f"/proc/{server.pid}/mountinfo").read_text().splitlines())


def _wal_mib(server: Server, data: Path) -> float:
    wal = data / "ade.db-wal"
    return wal.stat().st_size / 2**20 if wal.exists() else 0.0


def _temporary_files(server: Server, data: Path) -> float:
    below = [data / name for name in ("scratch", "uploads", "tmp")]
    found = itertools.chain.from_iterable(folder.rglob("*") for folder in below)
    ours = Path(tempfile.gettempdir()).glob(f"ade-{server.pid}-*")
    return sum(1 for _ in found) + sum(1 for _ in ours)


def _control_groups(server: Server, data: Path) -> float:
    ours = Path("/sys/fs/cgroup").rglob(f"ade-{server.pid}-*")
    return sum(1 + sum(inside.is_dir() for inside in group.iterdir()) for group in ours)


MEASURES = (
    Measure("server, anonymous MiB", 4, _server_mib),
    Measure("zygotes and children, anonymous MiB", 8, _below_mib),
    Measure("descriptors", 4, _descriptors),
    Measure("threads", 2, _threads),
    Measure("write-ahead log, MiB", 4, _wal_mib),
    Measure("temporary files", 4, _temporary_files),
    Measure("control groups", 1, _control_groups),
    Measure("mounts", 1, _mounts),
)


class Load:
    """Submit jobs at an even rate and follow their events, and count what came of it."""

    def __init__(self, server: Server, jobs_per_second: float) -> None:
        self._client = httpx.AsyncClient(
            base_url=server.url, headers=server.http.headers, timeout=120
        )
        self._every_seconds = SUBMITTERS / jobs_per_second
        self._recent: deque[str] = deque(maxlen=READERS)
        self._submitted = asyncio.Event()
        self.succeeded = 0
        self.streams = 0
        self.events = 0

    async def submit(self) -> None:
        """Submit jobs until cancelled, and insist that each succeeds."""
        for number in itertools.count():
            began = time.monotonic()
            body = cell(SOURCE, parameters={"n": number}) if number % 2 else echo(value=number)
            answer = await self._client.post(JOBS, json=body)
            assert answer.status_code == 202, answer.text
            job_id = answer.json()["job_id"]
            self._recent.append(job_id)
            self._submitted.set()
            await self._follow(job_id)
            job = (await self._client.get(f"{JOBS}/{job_id}")).json()
            assert job["status"] == "succeeded", job
            self.succeeded += 1
            await asyncio.sleep(max(0.0, began + self._every_seconds - time.monotonic()))

    async def read(self, turn: int) -> None:
        """Follow the events of one recent job after the other, each to its end."""
        await self._submitted.wait()
        while True:
            await self._follow(self._recent[turn % len(self._recent)])
            await asyncio.sleep(0.5)

    async def _follow(self, job_id: str) -> None:
        """Read the event stream of a job to its end."""
        headers = {"Accept": "text/event-stream"}
        async with self._client.stream("GET", f"{JOBS}/{job_id}/events", headers=headers) as answer:
            assert answer.status_code == 200, answer.status_code
            self.streams += 1
            async for line in answer.aiter_lines():
                self.events += line.startswith("data:")

    @contextmanager
    def running(self) -> Iterator[list["asyncio.Task[None]"]]:
        """Keep submitters and readers busy while inside."""
        tasks = [asyncio.create_task(self.submit()) for _ in range(SUBMITTERS)]
        tasks += [asyncio.create_task(self.read(turn)) for turn in range(READERS)]
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold what one measure did over the time that is judged."""

    name: str
    first: float
    last: float
    slope_per_hour: float
    growth_per_hour_max: float
    picture: str

    @property
    def is_flat(self) -> bool:
        """Tell whether it grew no faster than allowed."""
        return self.slope_per_hour <= self.growth_per_hour_max


def judge(measure: Measure, hours: Sequence[float], values: Sequence[float]) -> Finding:
    """Fit a line through what was measured after the warm-up."""
    slope = statistics.linear_regression(hours, values).slope
    edge = max(1, len(values) // 10)
    first, last = statistics.median(values[:edge]), statistics.median(values[-edge:])
    return Finding(measure.name, first, last, slope, measure.growth_per_hour_max, sparkline(values))


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Draw values as a line of bars."""
    size = -(-len(values) // width)
    means = [statistics.mean(values[n : n + size]) for n in range(0, len(values), size)]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0
    return "".join(BARS[round((mean - low) * scale)] for mean in means)


async def soak(server: Server, data: Path, minutes: float, rate: float) -> tuple[Load, list[Any]]:
    """Keep the server busy; return the load, and a row of values for each moment."""
    load, rows = Load(server, rate), []
    began = time.monotonic()
    console = Console(stderr=True)
    with load.running() as tasks:
        while (passed := time.monotonic() - began) < 60 * minutes:
            done, _ = await asyncio.wait(tasks, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED")
            for task in done:
                task.result()  # it never ends by itself: raise what went wrong
            values = [measure.read(server, data) for measure in MEASURES]
            rows.append((passed / 3600, *values))
            if console.is_terminal:
                left = minutes - passed / 60
                console.print(f"{load.succeeded} jobs, {left:.0f} min left  ", end="\r")
    return load, rows


def report(load: Load, findings: list[Finding], as_json: bool) -> None:
    """Print the slopes, as a table or as JSON."""
    console = Console()
    if as_json:
        rows = [
            {
                "name": one.name,
                "first": one.first,
                "last": one.last,
                "slope_per_hour": one.slope_per_hour,
                "flat": one.is_flat,
            }
            for one in findings
        ]
        sys.stdout.write(json.dumps({"jobs": load.succeeded, "measures": rows}, indent=2) + "\n")
        return
    table = Table("measure", "first", "last", "per hour", "allowed", "over time", "")
    for one in findings:
        numbers = [f"{number:.1f}" for number in (one.first, one.last)]
        slope, allowed = f"{one.slope_per_hour:+.2f}", f"{one.growth_per_hour_max:+.0f}"
        table.add_row(
            one.name, *numbers, slope, allowed, one.picture, "flat" if one.is_flat else "GROWS"
        )
    console.print(table)
    console.print(
        f"{load.succeeded} jobs succeeded; {load.streams} streams carried {load.events} events."
    )


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--rate", type=float, default=10, help="jobs per second")
    parser.add_argument("--json", action="store_true")
    asked: Any = parser.parse_args()
    with ExitStack() as stack:
        settings: dict[str, object] = dict(SETTINGS)
        if asked.database == "postgresql":
            server_url = stack.enter_context(databases.postgres_server(uuid.uuid4().hex))
            settings["ADE_DATABASE_URL"] = stack.enter_context(databases.fresh_postgres(server_url))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        start = stack.enter_context(starting(folder, (), **settings))
        server = start.server()
        load, rows = asyncio.run(soak(server, start.data_dir, asked.minutes, asked.rate))
        assert server.stop() == 0
    judged = rows[int(len(rows) * WARM_UP_SHARE) :]
    hours, *columns = zip(*judged, strict=True)
    findings = [
        judge(measure, hours, values) for measure, values in zip(MEASURES, columns, strict=True)
    ]
    report(load, findings, asked.json)
    return 0 if all(finding.is_flat for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
