"""A burst of jobs on a real Slurm of one node: from no pilot to several and back, with faults.

    scripts/bench burst                # 500 jobs of 1 s, 4 pilots of 4 slots
    scripts/bench burst --calm         # the same without faults

While the jobs run, one pilot is cancelled (`scancel`: it drains), another is killed, and slurmctld
is restarted. It ends with 1 unless every job succeeded with its own result and nothing is left. It
needs Slurm and munge: `scripts/test-programs` installs them on Debian.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from tests import databases
from tests.processes import eventually
from tests.slurm_cluster import PARTITION, SlurmCluster, missing, running_cluster
from tests.system.scaling import pilot_file, scaler_status
from tests.system.server import JOBS, Server, Start, echo, starting

PATIENCE_SECONDS = 1800.0
LOOK_SECONDS = 0.25
FILE = """
engine = "slurm"
tick_seconds = 1
[pilot]
env_file = "{env_file}"
folder = "{folder}"
slots = {slots}
idle_exit_seconds = 5
[policy]
max_blocks = {blocks}
[slurm]
partition = "{partition}"
"""


@dataclass
class Watch:
    """Look at jobs and blocks again and again, from the database and from Slurm."""

    url: str
    cluster: SlurmCluster
    began: float = field(default_factory=time.monotonic)
    jobs: Counter[str] = field(default_factory=Counter)
    blocks: Counter[str] = field(default_factory=Counter)
    seen: list[tuple[float, int, int]] = field(default_factory=list)  # s, jobs done, pilots running
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def done(self, jobs: int) -> bool:
        return self.jobs["succeeded"] + self.jobs["failed"] >= jobs

    def _watch(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self._over.wait(LOOK_SECONDS):
                count = "SELECT status, count(*) FROM {} GROUP BY status"
                self.jobs = Counter(dict(connection.execute(count.format("jobs")).fetchall()))
                rows = connection.execute(count.format("scale_blocks"))
                self.blocks = Counter(dict(rows.fetchall()))
                self.seen.append((self.seconds, self.jobs["succeeded"], self.blocks["running"]))


def main() -> None:
    """Run the burst once and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--job-ms", type=int, default=1000)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--calm", action="store_true", help="without faults")
    asked = parser.parse_args()
    if absent := missing():
        sys.exit(f"Slurm is not installed: {', '.join(absent)}")
    with (
        tempfile.TemporaryDirectory(prefix="ade-burst-") as folder,
        databases.postgres_server("burst") as server_url,
        databases.fresh_postgres(server_url) as url,
        running_cluster() as cluster,
        starting(Path(folder), ADE_DATABASE_URL=url) as start,
    ):
        sys.exit(run(asked, start, cluster, url))


def run(asked: argparse.Namespace, start: Start, cluster: SlurmCluster, url: str) -> int:
    """Submit, break things, and count."""
    server = start.server_without_worker(ADE_QUEUE_SIZE="0")
    file = start.folder / "scale.toml"
    file.write_text(
        FILE.format(
            env_file=pilot_file(start.folder, start),
            folder=start.folder / "pilots",
            slots=asked.slots,
            blocks=asked.blocks,
            partition=PARTITION,
        )
    )
    start.command("scale", "--config", str(file), **cluster.environment).said("is ready")
    ids = submit(server, asked.jobs, asked.job_ms)
    with Watch(url, cluster) as watch:
        if not asked.calm:
            break_things(watch, start, cluster, asked.jobs)
        eventually(lambda: watch.done(asked.jobs), PATIENCE_SECONDS)
        all_done = watch.seconds
        eventually(lambda: not cluster.jobs(), PATIENCE_SECONDS)
        eventually(lambda: watch.blocks["running"] == 0, PATIENCE_SECONDS)
        none_left = watch.seconds
    return report(watch, start, server, ids, all_done, none_left)


def submit(server: Server, jobs: int, job_ms: int) -> list[str]:
    """Submit all jobs in batches, and return their ids in order."""
    ids: list[str] = []
    for first in range(0, jobs, 100):
        numbers = range(first, min(first + 100, jobs))
        batch = [echo(value=number, sleep_ms=job_ms) for number in numbers]
        answer = server.http.post(f"{JOBS}/batch", json={"jobs": batch})
        assert answer.status_code < 300, answer.text
        ids += [one["job"]["job_id"] for one in answer.json()["items"]]
    return ids


def break_things(watch: Watch, start: Start, cluster: SlurmCluster, jobs: int) -> None:
    """Cancel a pilot, kill another, and restart slurmctld while pilots run."""
    eventually(lambda: watch.done(jobs // 10), PATIENCE_SECONDS)
    cancelled, killed = running(cluster)[:2]
    cluster.run("scancel", cancelled)
    print(f"{watch.seconds:6.1f} s  scancel of a pilot with {watch.jobs['running']} jobs running")
    eventually(lambda: watch.done(jobs // 4), PATIENCE_SECONDS)
    kill(cluster, killed)
    print(f"{watch.seconds:6.1f} s  SIGKILL to a pilot")
    eventually(lambda: watch.done(jobs // 2), PATIENCE_SECONDS)
    cluster.stop_controller()
    print(f"{watch.seconds:6.1f} s  slurmctld stopped")
    away = eventually(lambda: scaler_status(start, 120)["trouble"], PATIENCE_SECONDS)
    cluster.start_controller()
    print(f"{watch.seconds:6.1f} s  slurmctld started again; status had said: {away}")


def kill(cluster: SlurmCluster, job: str) -> None:
    """Kill a pilot at once; `scancel` would let it drain."""
    name = cluster.run("squeue", "-h", "-j", job, "-o", "%j").strip()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"worker" in words and name.encode() in words:
                os.kill(int(folder.name), signal.SIGKILL)


def running(cluster: SlurmCluster) -> list[str]:
    """List the ids of blocks that run, once there are two."""
    arguments = ("squeue", "-h", "--state=RUNNING", "-o", "%i")
    found = eventually(lambda: (ids := cluster.run(*arguments).split())[1:] and ids, 300)
    return list(found)


def report(
    watch: Watch, start: Start, server: Server, ids: list[str], all_done: float, none_left: float
) -> int:
    """Print figures; return 1 if a job is not right, or anything is left."""
    jobs = [server.job({"job_id": job}) for job in ids]
    ends = Counter(job["status"] for job in jobs)
    results = [
        server.result(job)["outputs"]["result_json"] for job in jobs if job["status"] == "succeeded"
    ]
    wrong = sum(result != n for n, result in enumerate(results))
    status = scaler_status(start, 120)
    first = next((seconds for seconds, _, pilots in watch.seen if pilots), 0.0)
    print(f"jobs: {dict(ends)}; wrong results: {wrong}")
    print(f"attempts of a job: {dict(sorted(Counter(job['attempt'] for job in jobs).items()))}")
    print(f"first pilot after {first:.1f} s, at most {max(n for *_, n in watch.seen)} at once")
    print(f"all jobs ended after {all_done:.1f} s ({len(ids) / all_done:.1f} jobs/s)")
    print(f"no block left after {none_left:.1f} s")
    print(f"blocks: {dict(watch.blocks)}; the scaler: {json.dumps(status['totals'])}")
    print("second: jobs done, pilots running")
    for seconds, done, pilots in watch.seen[:: max(len(watch.seen) // 20, 1)]:
        print(f"{seconds:6.1f}: {done:5d} {pilots:3d}")
    is_right = ends == {"succeeded": len(ids)} and not wrong and not watch.cluster.jobs()
    return 0 if is_right else 1


if __name__ == "__main__":
    main()
