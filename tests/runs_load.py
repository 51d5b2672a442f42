"""Many runs of one configuration at once: one build, every run ended, every output right.

`.venv/bin/python -m tests.runs_load` starts 1000 runs at the same moment, on SQLite with one server
and on PostgreSQL with two, and looks at the operating system all the while: how many processes run
jobs at a time, and how many there were in all. A busy machine may hide a process from it, so these
are bounds from below; how often the build was started is its attempt. It ends with 1 if anything is
not as it must be.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table
from tests import databases
from tests.processes import aeventually, jobs_of
from tests.system.runs import BASE, RUNS, SAMPLE, cells, configured, expected, uploaded
from tests.system.server import JOBS, KEY, Server, starting

LOOK_SECONDS = 0.01
CONNECTIONS_MAX = 500
DOCUMENTS = 8
ANSWER_SECONDS = 300
END_SECONDS = 3600
UNENDED = ("queued", "running")
# Something for the build to do.
PACKAGE = {"hooks/on_activate.py": "def on_activate():\n    return {'active': True}\n"}
Cells = dict[str, list[list[Any]]]


class Watch:
    """Count the processes that run jobs, by looking at the operating system again and again."""

    def __init__(self, servers: list[Server]) -> None:
        self._pids = [server.pid for server in servers]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.at_once_max = 0  # of one server
        self.seen: set[tuple[int, str]] = set()
        self.looks = 0

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for pid in self._pids:
                jobs = jobs_of(pid)
                self.at_once_max = max(self.at_once_max, len(jobs))
                for job in jobs:
                    with contextlib.suppress(OSError):
                        began = Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[19]
                        self.seen.add((job, began))
            self.looks += 1

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@dataclass
class Load:
    """Hold what came of many runs."""

    runs: dict[str, str] = field(default_factory=dict)  # and the document of each
    refused: Counter[int] = field(default_factory=Counter)
    submit_seconds: float = 0.0
    end_seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    builds: list[dict[str, Any]] = field(default_factory=list)
    build_jobs: int = 0
    wrong: list[str] = field(default_factory=list)
    at_once_max: int = 0
    processes: int = 0
    looks: int = 0


def document(number: int) -> bytes:
    """Make a roster that differs from the others in every row."""
    text = SAMPLE.read_text()
    return text.replace("RC10", f"R{chr(65 + number)}10").encode()


async def storm(
    servers: list[Server], count: int, folder: Path, *, finish: int | None = None
) -> Load:
    """Start so many runs at once, and wait until all have ended.

    With `finish`, those that still wait when so many have ended are cancelled.
    """
    first = servers[0]
    contents = [document(number) for number in range(DOCUMENTS)]
    ids = [uploaded(first, content) for content in contents]
    rights: dict[str, Cells] = {}
    for document_id, content in zip(ids, contents, strict=True):
        (folder / document_id).mkdir()
        rights[document_id] = expected(folder / document_id, content)
    configuration_id = configured(first, PACKAGE)
    load = Load()
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(server)) for server in servers]
        with Watch(servers) as watch:
            began = time.perf_counter()
            await asyncio.gather(
                *[
                    _start(clients[n % len(clients)], configuration_id, ids[n % DOCUMENTS], load)
                    for n in range(count)
                ]
            )
            load.submit_seconds = time.perf_counter() - began
            await _until_ended(clients[0], finish)
            load.end_seconds = time.perf_counter() - began
        load.at_once_max, load.processes = watch.at_once_max, len(watch.seen)
        load.looks = watch.looks
        await _check(clients[-1], load, rights, folder)
        page = (await clients[0].get(f"{BASE}/builds?limit=200")).json()
        load.builds = page["items"]
        load.build_jobs = len(await _some(clients[0], job_type="build"))
    return load


def _client(server: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=server.url,
        headers={"Authorization": f"Bearer {KEY}"},
        timeout=ANSWER_SECONDS,
        limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
    )


async def _start(
    client: httpx.AsyncClient, configuration_id: str, document_id: str, load: Load
) -> None:
    body = {"input_document_id": document_id}
    answer = await client.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    if answer.status_code == 202:
        load.runs[answer.json()["run_id"]] = document_id
    else:
        load.refused[answer.status_code] += 1


async def _until_ended(client: httpx.AsyncClient, finish: int | None) -> None:
    async with asyncio.timeout(END_SECONDS):
        if finish is not None:
            await aeventually(lambda: _are(client, "succeeded", finish), END_SECONDS)
        while True:
            waiting = await _some(client, status=UNENDED[0])
            if not waiting and not await _some(client, status=UNENDED[1]):
                return
            if finish is not None:
                await asyncio.gather(*[_cancel(client, job) for job in waiting])
            else:
                await asyncio.sleep(0.1)


async def _some(client: httpx.AsyncClient, **filters: str) -> list[dict[str, Any]]:
    answer = await client.get(JOBS, params={**filters, "limit": "200"})
    return list(answer.json()["items"])


async def _are(client: httpx.AsyncClient, status: str, count: int) -> bool:
    return len(await _some(client, status=status, job_type="normalize")) >= count


async def _cancel(client: httpx.AsyncClient, job: dict[str, Any]) -> None:
    await client.post(f"{RUNS}/{job['job_id']}/cancel")  # one that ended meanwhile is refused


async def _check(
    client: httpx.AsyncClient, load: Load, rights: dict[str, Cells], folder: Path
) -> None:
    """Read every run and compare every output with what the engine alone writes."""
    for run_id, document_id in load.runs.items():
        job = (await client.get(f"{JOBS}/{run_id}")).json()
        load.statuses[job["status"]] += 1
        load.attempts[job["attempt"]] += 1
        if job["status"] != "succeeded":
            continue
        path = folder / "output.xlsx"
        path.write_bytes((await client.get(f"{JOBS}/{run_id}/output")).content)
        if cells(path) != rights[document_id]:
            load.wrong.append(run_id)


def faults(load: Load, asked: int, at_once: int) -> list[str]:
    """List what is not as it must be; none is how it should end."""
    executed = load.statuses["succeeded"]
    found = {
        f"{asked} runs were asked for, {len(load.runs)} were accepted; {dict(load.refused)}": (
            len(load.runs) == asked
        ),
        f"they ended otherwise: {dict(load.statuses)}": set(load.statuses) <= {"succeeded"},
        f"{len(load.builds)} builds by {load.build_jobs} jobs": (
            (len(load.builds), load.build_jobs) == (1, 1)
        ),
        f"a build was {[build['status'] for build in load.builds]}": (
            all(build["status"] == "ready" for build in load.builds)
        ),
        f"a build was made {[build['attempt'] for build in load.builds]} times": (
            all(build["attempt"] == 1 for build in load.builds)
        ),
        f"outputs are wrong: {load.wrong[:5]}": not load.wrong,
        f"{load.at_once_max} processes ran jobs at once": load.at_once_max <= at_once,
        f"{load.processes} processes for {executed} runs and one build": (
            load.processes <= executed + 1
        ),
    }
    return [fault for fault, fine in found.items() if not fine]


# --- the program ----------------------------------------------------------------------------------


@contextlib.contextmanager
def on_sqlite(folder: Path) -> Iterator[list[Server]]:
    """Serve in one process."""
    with starting(folder, (), **SETTINGS) as start:
        yield [start.server()]


@contextlib.contextmanager
def on_postgresql(folder: Path) -> Iterator[list[Server]]:
    """Serve in two processes that share a database and a folder."""
    run = f"load{os.getpid()}"
    with (
        databases.postgres_server(run) as server,
        databases.fresh_postgres(server) as url,
        starting(folder, (), ADE_DATABASE_URL=url, **SETTINGS) as start,
    ):
        yield [start.server(), start.server()]


SETTINGS: dict[str, object] = {"ADE_QUEUE_SIZE": 0, "ADE_LOG_LEVEL": "warning"}
PLACES = {"sqlite": on_sqlite, "postgresql": on_postgresql}
COLUMNS = (
    "database",
    "servers",
    "runs",
    "submitted/s",
    "ended/s",
    "builds",
    "processes",
    "at once",
    "looks",
)
AT_ONCE = 2  # the default of ADE_MAX_CONCURRENCY


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.runs_load", description=__doc__)
    parser.add_argument("--on", choices=PLACES, help="only this database")
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(*COLUMNS)
    problems: list[str] = []
    for place in [options.on] if options.on else list(PLACES):
        with (
            tempfile.TemporaryDirectory(prefix="ade-load-") as name,
            PLACES[place](Path(name)) as servers,
        ):
            table = Table(*COLUMNS)
            load = asyncio.run(storm(servers, options.runs, Path(name)))
            table.add_row(
                place,
                str(len(servers)),
                str(len(load.runs)),
                f"{options.runs / load.submit_seconds:.0f}",
                f"{options.runs / load.end_seconds:.1f}",
                f"{len(load.builds)}, made {load.builds[0]['attempt']} times",
                str(load.processes),
                f"{load.at_once_max} a server",
                str(load.looks),
            )
            console.print(table)
            found = faults(load, options.runs, AT_ONCE)
            for fault in found:
                console.print(f"{place}: {fault}")
            problems += found
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
