"""What a job costs: CPU, rows, write-ahead log and files; and how workers add up.

    scripts/bench capacity             # 1000 jobs of each kind, then 1, 2 and 4 workers
    scripts/bench capacity --parts idle

The first part runs jobs that do nothing, and divides what the processes used by their number. The
second runs jobs that sleep, so that cores are no limit, on 1, 2 and 4 worker processes. The third
measures workers that have nothing to do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests import databases
from tests.processes import eventually, tree
from tests.system.cells import cell
from tests.system.server import JOBS, Server, Start, echo, starting

from bench.pinning import parent_of

PATIENCE_SECONDS = 1800.0
TICKS = os.sysconf("SC_CLK_TCK")
BATCH = 100


@dataclass(frozen=True)
class Used:
    """What was used up to a moment."""

    seconds: float
    server_cpu: float
    worker_cpu: float
    database_cpu: float
    rows: int
    log: int
    files: int

    def since(self, earlier: Used, jobs: int) -> dict[str, float]:
        cpu = {
            "server": self.server_cpu - earlier.server_cpu,
            "worker and child": self.worker_cpu - earlier.worker_cpu,
            "database": self.database_cpu - earlier.database_cpu,
        }
        size = {
            "rows, bytes": self.rows - earlier.rows,
            "write-ahead log, bytes": self.log - earlier.log,
            "files, bytes": self.files - earlier.files,
        }
        milliseconds = {f"{name}, ms of CPU": value * 1000 / jobs for name, value in cpu.items()}
        rate = {"jobs a second": jobs / (self.seconds - earlier.seconds)}
        return rate | milliseconds | {name: value / jobs for name, value in size.items()}


def main() -> None:
    """Measure both parts and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--idle-seconds", type=float, default=20)
    parser.add_argument("--sleepers", type=int, default=120, help="jobs of 1 s for each worker")
    parser.add_argument("--parts", nargs="+", default=["cost", "workers", "idle"])
    asked = parser.parse_args()
    with databases.postgres_server("capacity") as url:
        if "cost" in asked.parts:
            show_costs(url, asked.jobs)
        if "workers" in asked.parts:
            show_workers(url, asked.sleepers)
        if "idle" in asked.parts:
            show_idle(url, asked.idle_seconds)


def show_costs(server_url: str, jobs: int) -> None:
    """Print what a job costs."""
    for name, body in (("echo", echo), ("object_execute", one_and_one)):
        with fresh(server_url) as (start, database):
            print(f"\n{name}, a job:")
            for what, value in cost(start, database, body, jobs).items():
                print(f"  {what:24} {value:10,.1f}")


def show_workers(server_url: str, sleepers_each: int) -> None:
    """Print how workers add up."""
    print("\nworkers of 8 slots, jobs that sleep for 1 s:")
    alone = 0.0
    for workers in (1, 2, 4):
        with fresh(server_url) as (start, _):
            rate = sleepers(start, workers, sleepers_each * workers)
        alone = alone or rate
        print(f"  {workers}: {rate:6.1f} jobs a second, {rate / (alone * workers):.2f} of linear")


def show_idle(server_url: str, seconds: float) -> None:
    """Print what a worker costs that has nothing to do."""
    print("\n4 idle workers, each:")
    with fresh(server_url) as (start, database):
        for what, value in idle(start, database, 4, seconds).items():
            print(f"  {what:24} {value:10,.1f}")


@contextmanager
def fresh(server_url: str) -> Iterator[tuple[Start, str]]:
    """Give a data folder and a database of their own."""
    with (
        tempfile.TemporaryDirectory(prefix="ade-capacity-") as folder,
        databases.fresh_postgres(server_url) as url,
        starting(Path(folder), ADE_DATABASE_URL=url, ADE_QUEUE_SIZE="0") as start,
    ):
        yield start, url


def one_and_one(value: int) -> dict[str, Any]:
    """Ask for a cell that no other asked for."""
    return cell(f"{value} + 1")


def cost(start: Start, url: str, body: Any, jobs: int) -> dict[str, float]:
    """Run jobs that do nothing, and return what one costs."""
    server = start.server_without_worker()
    worker = start.worker(ADE_MAX_CONCURRENCY="4")
    submit(server, [body(value=-number - 1) for number in range(20)])  # everything is warm then
    finished(url, 20)
    before = used(start, server.pid, worker.pid, url)
    submit(server, [body(value=number) for number in range(jobs)])
    finished(url, jobs + 20)
    return used(start, server.pid, worker.pid, url).since(before, jobs)


def sleepers(start: Start, workers: int, jobs: int) -> float:
    """Return how many jobs that sleep end in a second."""
    server = start.server_without_worker()
    for _ in range(workers):
        start.worker(ADE_MAX_CONCURRENCY="8")
    url = str(start.settings["ADE_DATABASE_URL"])
    submit(server, [echo(value=-1 - n, sleep_ms=1000) for n in range(workers * 8)])
    finished(url, workers * 8)
    began = time.monotonic()
    submit(server, [echo(value=number, sleep_ms=1000) for number in range(jobs)])
    finished(url, workers * 8 + jobs)
    return jobs / (time.monotonic() - began)


def idle(start: Start, url: str, workers: int, seconds: float) -> dict[str, float]:
    """Return what a worker costs that has nothing to do."""
    server = start.server_without_worker()
    pids = [start.worker(ADE_MAX_CONCURRENCY="8").pid for _ in range(workers)]
    time.sleep(5)  # what they do at their start
    before, own = used(start, server.pid, pids[0], url), sum(map(cpu_seconds, pids))
    time.sleep(seconds)
    own = sum(map(cpu_seconds, pids)) - own
    after = used(start, server.pid, pids[0], url)
    lasted = after.seconds - before.seconds
    database_cpu = after.database_cpu - before.database_cpu
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        found = connection.execute(query).fetchone() or (0,)
    return {
        "CPU, ms a second": own * 1000 / workers / lasted,
        "database, ms a second": database_cpu * 1000 / workers / lasted,
        "log, bytes a second": (after.log - before.log) / workers / lasted,
        "connections, with those of the server": (found[0] - 1) / workers,
        "memory, MB": sum(resident_mb(pid) for pid in pids) / workers,
    }


def resident_mb(pid: int) -> float:
    """Return the memory of a process and all below it, shared pages divided."""
    total = 0
    for one in {pid} | tree(pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def submit(server: Server, bodies: list[dict[str, Any]]) -> None:
    """Submit jobs in batches; all must be accepted."""
    for first in range(0, len(bodies), BATCH):
        answer = server.http.post(f"{JOBS}/batch", json={"jobs": bodies[first : first + BATCH]})
        refused = [item for item in answer.json()["items"] if item["status"] != 202]
        assert not refused, refused[:1]


def finished(url: str, jobs: int) -> None:
    """Wait until so many jobs have succeeded."""
    with psycopg.connect(url, autocommit=True) as connection:

        def are_done() -> bool:
            time.sleep(0.1)
            count = "SELECT count(*) FROM jobs WHERE status = 'succeeded'"
            return (connection.execute(count).fetchone() or (0,))[0] >= jobs

        eventually(are_done, PATIENCE_SECONDS)


def used(start: Start, server: int, worker: int, url: str) -> Used:
    """Read what processes, database and folder have used so far."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        query = "SELECT pg_database_size(current_database()), pg_wal_lsn_diff(%s(), '0/0')"
        row = connection.execute(query.replace("%s", "pg_current_wal_lsn")).fetchone()
        assert row is not None
        database_cpu = cpu_seconds(parent_of(connection.info.backend_pid))
    files = sum(file.stat().st_blocks * 512 for file in start.data_dir.rglob("*") if file.is_file())
    return Used(
        time.monotonic(),
        cpu_seconds(server),
        cpu_seconds(worker),
        database_cpu,
        int(row[0]),
        int(row[1]),
        files,
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all below it, those that have ended included."""
    total = 0
    for one in {pid} | tree(pid):
        try:
            stat = Path(f"/proc/{one}/stat").read_text()
        except OSError:
            continue
        total += sum(int(word) for word in stat.rpartition(")")[2].split()[11:15])
    return total / TICKS


if __name__ == "__main__":
    main()
