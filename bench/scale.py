"""Measure how throughput grows with the number of workers, beside the database and over HTTP.

    scripts/bench scale [--workers 1 2 4] [--slots 4] [--rounds 8] [--sleep-ms 3000]

Real processes on PostgreSQL: a server that runs nothing, and workers that it shares the database
with, or that reach nothing but the server. The jobs sleep, so that cores do not limit. Throughput
is jobs per second from the start of the first to the end of the last, by the clock of the database.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.databases import fresh_postgres, postgres_server
from tests.system.server import Server, Start, starting

LINEAR_MIN = 0.9
REMOTE_MIN = 0.8
WAIT_SECONDS = 900
WHERE = ("beside the database", "over HTTP")


@contextmanager
def servers(url: str, slots: int) -> Iterator[tuple[Start, Server]]:
    """Start a server without a worker on a new database."""
    settings = {"ADE_MAX_CONCURRENCY": slots, "ADE_QUEUE_SIZE": 0, "ADE_LOG_LEVEL": "warning"}
    with (
        tempfile.TemporaryDirectory(prefix="ade-scale-") as folder,
        fresh_postgres(url) as database,
        starting(Path(folder), ADE_DATABASE_URL=database, **settings) as start,
    ):
        yield start, start.accepting_server()


def measure(url: str, where: str, workers: int, given: argparse.Namespace) -> dict[str, Any]:
    """Run the jobs of one case, and return the jobs per second."""
    with servers(url, given.slots) as (start, server):
        for number in range(workers):
            if where == WHERE[0]:
                start.worker(ADE_STORAGE_DATA_DIR=start.folder / f"worker-{number}")
            else:
                name = f"agent-{number}"
                start.remote_worker(server.url, name=name, ADE_MAX_CONCURRENCY=given.slots)
        run(server, workers * given.slots, 200)  # interpreters are warm, and nobody is first
        jobs = run(server, workers * given.slots * given.rounds, given.sleep_ms)
    began = min(moment(job["started_at"]) for job in jobs)
    seconds = max(moment(job["finished_at"]) for job in jobs) - began
    return {
        "where": where,
        "workers": workers,
        "jobs": len(jobs),
        "seconds": round(seconds, 2),
        "jobs_per_second": len(jobs) / seconds,
        "of_ideal": len(jobs) / seconds / (workers * given.slots * 1000 / given.sleep_ms),
    }


def run(server: Server, count: int, sleep_ms: int) -> list[dict[str, Any]]:
    """Submit jobs that sleep, and wait for the end of all."""
    submitted = [server.submit(value=os.urandom(8).hex(), sleep_ms=sleep_ms) for _ in range(count)]
    jobs = [server.ended_job(job, WAIT_SECONDS) for job in submitted]
    assert {job["status"] for job in jobs} == {"succeeded"}
    return jobs


def moment(text: str) -> float:
    """Return a time in seconds."""
    return datetime.fromisoformat(text).timestamp()


def ratios(found: list[dict[str, Any]]) -> None:
    """Add to each case how it compares with one worker, and with workers beside the database."""
    rates = {(one["where"], one["workers"]): one["jobs_per_second"] for one in found}
    fewest = min(one["workers"] for one in found)
    for one in found:
        alone = rates[one["where"], fewest] / fewest
        one["of_linear"] = one["jobs_per_second"] / (one["workers"] * alone)
        one["of_local"] = one["jobs_per_second"] / rates[WHERE[0], one["workers"]]


def show(found: list[dict[str, Any]]) -> None:
    """Print the cases, and whether the goals are met."""
    table = Table("workers", "", "jobs", "seconds", "jobs/s", "of linear", "of local")
    for one in found:
        table.add_row(
            str(one["workers"]),
            one["where"],
            str(one["jobs"]),
            f"{one['seconds']:.1f}",
            f"{one['jobs_per_second']:.2f}",
            f"{one['of_linear']:.3f}",
            f"{one['of_local']:.3f}",
        )
    console = Console()
    console.print(table)
    linear = min(one["of_linear"] for one in found if one["where"] == WHERE[0])
    remote = min(one["of_local"] for one in found)
    for what, figure, least in (("linear", linear, LINEAR_MIN), ("remote", remote, REMOTE_MIN)):
        verdict = "met" if figure >= least else "missed"
        console.print(f"{what}: {figure:.3f}, at least {least}: {verdict}")


def main() -> None:
    """Measure every case and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--sleep-ms", type=int, default=3000)
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    with postgres_server(f"scale-{os.getpid()}") as url:
        found = [
            measure(url, where, workers, given) for workers in given.workers for where in WHERE
        ]
    ratios(found)
    show(found)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
