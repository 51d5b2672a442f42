"""Runs beside the bare engine: how fast they are accepted, how fast they end, what CPU they cost.

`scripts/bench runs` takes one small CSV and one configuration. The bare engine normalises it in a
loop in one process, without a sandbox, queue or record of the job, and then in a fresh fork for
each, because no two runs share a process. ADE takes the same work over HTTP, on SQLite, with all
sandbox layers that can be applied here; its CPU time is that of all its processes (server, worker,
zygotes, children), so the ratio to the bare engine is what a run costs in all. All take turns in
one run, because the machine is never quiet: read the ratios. `--quick` is a minute, and noisier.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvloop
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ade_engine.preload.spreadsheets
import ade_engine.run_entry  # noqa: F401  what a job's process has imported when it begins
from ade.sandbox.usage import times_of, tree
from ade_engine import examples
from ade_engine.entry.normalize import NormalizeRequest, normalize

TEMPLATE = "member_roster"
PACKAGE = examples.FOLDER / TEMPLATE
DOCUMENT = PACKAGE / "samples" / "roster.csv"
BASE = "/api/v1/workspaces/default"
KEY = "ade_bench_key_of_no_worth"
CONNECTIONS = 32
LOOK_SECONDS = 0.02
GOAL_OF_BARE = 1.4
GOAL_LATENCY_MS = 150
BARE, FORKED = "bare engine, a loop in one process", "bare engine, a fork for each"


@dataclass
class Entrant:
    """Hold one way to do the runs, and what each round took."""

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def runs_per_second(self, runs: int) -> float:
        return runs / statistics.median(self.seconds)

    def cpu_ms(self, runs: int) -> float:
        return statistics.median(self.cpu_seconds) / runs * 1000


def main() -> None:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 120)
    uvloop.run(measure(options, console))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench runs", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="runs per entrant and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--quick", action="store_true", help="30 runs, one round")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.rounds = 30, 1
    return options


async def measure(options: argparse.Namespace, console: Console) -> None:
    runs = options.runs
    bare, forked = Entrant(BARE), Entrant(FORKED)
    ade = Entrant(f"ADE, {options.at_once} at a time")
    children = Entrant("  of it the children")
    accepted: list[float] = []
    latencies: list[float] = []
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as name:
        folder = Path(name)
        async with serving(folder / "data", options.at_once) as (client, server):
            where = await prepare(client)
            one_by_one(1, folder)  # what is first used now is not measured later
            await all_of(client, where, 1, server)
            for _ in track(range(options.rounds), "rounds", disable=not sys.stdout.isatty()):
                timed(bare, lambda: one_by_one(runs, folder))
                timed(forked, lambda: one_by_one(runs, folder, fork=True))
                took = await all_of(client, where, runs, server)
                accepted.append(took.submitting)
                latencies += await one_at_a_time(client, where, max(1, runs // 5))
                for entrant, cpu in ((ade, took.cpu), (children, took.children_cpu)):
                    entrant.seconds.append(took.all)
                    entrant.cpu_seconds.append(cpu)
            isolation = await layers(client)
    console.print(
        {"python": platform.python_version(), "cores": os.cpu_count(), "layers": isolation}
    )
    console.print(table([bare, forked, ade, children], runs))
    ratio = ade.cpu_ms(runs) / bare.cpu_ms(runs)
    met = "met" if ratio <= GOAL_OF_BARE else "missed"
    console.print(f"CPU of a run: {ratio:.2f} of the bare engine; goal {GOAL_OF_BARE}: {met}")
    rate = runs / statistics.median(accepted)
    console.print(f"{rate:.0f} submissions a second ({CONNECTIONS} connections), while runs go on")
    latency = statistics.median(latencies) * 1000
    met = "met" if latency <= GOAL_LATENCY_MS else "missed"
    console.print(
        f"one at a time, from request to result: p50 {latency:.0f} ms,"
        f" fastest {min(latencies) * 1000:.0f}; goal {GOAL_LATENCY_MS} on an idle machine: {met}"
    )
    if options.json:
        figures = {
            entrant.name: {
                "runs_per_second": entrant.runs_per_second(runs),
                "cpu_ms_per_run": entrant.cpu_ms(runs),
            }
            for entrant in (bare, forked, ade, children)
        }
        report = {
            "submissions_per_second": rate,
            "cpu_of_bare": ratio,
            "latency_ms_p50": latency,
            "runs": figures,
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def table(entrants: list[Entrant], runs: int) -> Table:
    first = entrants[0]
    shown = Table("entrant", "runs/s", "of bare", "CPU ms a run", "of bare")
    for entrant in entrants:
        rate, cpu = entrant.runs_per_second(runs), entrant.cpu_ms(runs)
        of_rate, of_cpu = rate / first.runs_per_second(runs), cpu / first.cpu_ms(runs)
        shown.add_row(entrant.name, f"{rate:.1f}", f"{of_rate:.2f}", f"{cpu:.0f}", f"{of_cpu:.2f}")
    return shown


# --- the bare engine ------------------------------------------------------------------------------


def timed(entrant: Entrant, work: Callable[[], None]) -> None:
    began, cpu = time.perf_counter(), cpu_seconds()
    work()
    entrant.seconds.append(time.perf_counter() - began)
    entrant.cpu_seconds.append(cpu_seconds() - cpu)


def cpu_seconds() -> float:
    """Return what this process and those that it waited for have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def tree_cpu_seconds(pid: int) -> float:
    """Return what a process, all below it, and those that they waited for have used."""
    times = [times_of(each) for each in tree(pid)]
    return sum(each.own_ms + each.waited_for_ms for each in times) / 1000


def one_by_one(runs: int, folder: Path, *, fork: bool = False) -> None:
    """Normalise in a process that has imported all; it forks for each run, or does them itself."""
    worker = os.fork()
    if worker:
        assert os.waitpid(worker, 0)[1] == 0
        return
    code = 1
    with contextlib.suppress(BaseException):
        for number in range(runs):
            child = os.fork() if fork else 0
            if child:
                assert os.waitpid(child, 0)[1] == 0
                continue
            with contextlib.redirect_stdout(None):
                normalize(NormalizeRequest(DOCUMENT, PACKAGE, folder / "bare" / str(number)))
            if fork:
                os._exit(0)
        code = 0
    os._exit(code)


# --- ADE ------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def serving(data: Path, at_once: int) -> AsyncIterator[tuple[httpx.AsyncClient, int]]:
    """Serve on SQLite until the block ends; give a client and the server's process id."""
    environ = {
        "PATH": os.environ["PATH"],
        "ADE_STORAGE_DATA_DIR": str(data),
        "ADE_BOOTSTRAP_API_KEY": KEY,
        "ADE_PORT": "0",
        "ADE_LOG_LEVEL": "error",
        "ADE_QUEUE_SIZE": "0",
        "ADE_MAX_CONCURRENCY": str(at_once),
    }
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ade", "serve"), env=environ, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        address = (await server.stdout.readline()).decode().split()[-1]
        limits = httpx.Limits(max_connections=CONNECTIONS)
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(
            base_url=address, headers=headers, limits=limits, timeout=600
        ) as client:
            yield client, server.pid
    finally:
        server.kill()
        await server.wait()


async def prepare(client: httpx.AsyncClient) -> tuple[str, dict[str, str]]:
    """Upload the document and make the configuration; return where runs start, and with what."""
    sent = {"file": (DOCUMENT.name, DOCUMENT.read_bytes())}
    document = (await client.post(f"{BASE}/documents", files=sent)).raise_for_status().json()
    made = {"name": "bench", "template": TEMPLATE}
    answer = (await client.post(f"{BASE}/configurations", json=made)).raise_for_status()
    path = f"{BASE}/configurations/{answer.json()['configuration_id']}/runs"
    return path, {"input_document_id": document["document_id"]}


@dataclass
class Took:
    """Hold the seconds that a number of runs took."""

    submitting: float
    all: float
    cpu: float
    children_cpu: float


async def all_of(
    client: httpx.AsyncClient, where: tuple[str, dict[str, str]], runs: int, server: int
) -> Took:
    """Start runs and wait for them."""
    path, body = where
    began, cpu = time.perf_counter(), tree_cpu_seconds(server)
    answers = await asyncio.gather(*[client.post(path, json=body) for _ in range(runs)])
    submitted = time.perf_counter() - began
    started = [answer.raise_for_status().json()["links"]["job"] for answer in answers]
    await until_ended(client, max(started))  # the ids are in the order of acceptance
    await until_idle(client)
    ended, cpu = time.perf_counter() - began, tree_cpu_seconds(server) - cpu
    jobs = [(await client.get(job)).json() for job in started]
    assert all(job["status"] == "succeeded" for job in jobs), jobs
    children = sum(job["resource_usage"]["cpu_ms"] for job in jobs) / 1000
    return Took(submitted, ended, cpu, children)


async def one_at_a_time(
    client: httpx.AsyncClient, where: tuple[str, dict[str, str]], runs: int
) -> list[float]:
    """Start a run, wait for its result, then start the next; return the seconds of each."""
    path, body = where
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        answer = await client.post(path, json=body, headers={"Prefer": "wait=60"})
        seconds.append(time.perf_counter() - began)
        assert answer.raise_for_status().json()["status"] == "succeeded", answer.text
    return seconds


async def until_ended(client: httpx.AsyncClient, job: str) -> None:
    """Follow a job's events to their end, which costs the server less than being asked often."""
    accept = {"Accept": "text/event-stream"}
    async with client.stream("GET", f"{job}/events", headers=accept) as events:
        async for _ in events.aiter_bytes():
            pass


async def until_idle(client: httpx.AsyncClient) -> None:
    for status in ("queued", "running"):
        asked = {"status": status, "limit": 1}
        while True:
            if not (await client.get(f"{BASE}/jobs", params=asked)).json()["items"]:
                break
            await asyncio.sleep(LOOK_SECONDS)


async def layers(client: httpx.AsyncClient) -> list[Any]:
    (job,) = (await client.get(f"{BASE}/jobs", params={"limit": 1})).json()["items"]
    return list(job["isolation"])


if __name__ == "__main__":
    main()
