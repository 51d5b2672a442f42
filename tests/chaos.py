"""Kill servers at random while jobs come in, then check that nothing was lost or done twice.

A long run, not a test of any tier: `scripts/chaos [KILLS]`. Three servers share a PostgreSQL; one
of them is killed with SIGKILL, again and again, and started anew.
"""

import argparse
import random
import sys
import tempfile
import threading
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from tests import databases
from tests.processes import eventually
from tests.system.server import ENDED, JOBS, SHORT_LEASE, Server, Start, echo, starting

SERVERS = 3
STARTS = {"job.started"}
ENDS = {"job.lost", "job.retried", "job.released", *(f"job.{status}" for status in ENDED)}
SETTINGS = {"ADE_QUEUE_SIZE": 0, "ADE_MAX_CONCURRENCY": 4, **SHORT_LEASE}


class Client(threading.Thread):
    """Submit jobs to whichever server answers, and remember what was promised."""

    def __init__(self, servers: list[Server]) -> None:
        super().__init__(daemon=True)
        self.servers = servers
        self.accepted: list[str] = []
        self.done = threading.Event()

    def run(self) -> None:
        """Submit until stopped."""
        while not self.done.wait(0.05):
            server = random.choice(self.servers)
            body = echo(value=len(self.accepted), sleep_ms=random.choice([0, 50, 1000]))
            try:
                answer = httpx.post(
                    server.url + JOBS, json=body, headers=server.http.headers, timeout=5
                )
            except httpx.HTTPError:
                continue  # nothing was promised
            if answer.status_code == 202:
                self.accepted.append(answer.json()["job_id"])
            else:
                assert answer.status_code == 503, answer.text


def check(server: Server, job_id: str) -> str:
    """Check one accepted job's whole story, and return how it ended."""
    job = server.ended_job({"job_id": job_id}, 120)
    words = [word for word in server.log(job) if word in STARTS | ENDS]
    for n, word in enumerate(words):
        assert (word in STARTS) == (n % 2 == 0), (job_id, words)  # one attempt after the other
    assert sum(word == f"job.{status}" for word in words for status in ENDED) == 1, (job_id, words)
    assert words[-1] == f"job.{job['status']}", (job_id, words)
    assert job["attempt"] == words.count("job.started"), (job_id, words)
    if job["status"] == "failed":
        assert job["error"]["code"] == "LEASE_LOST", job
    return f"{job['status']} at attempt {job['attempt']}"


def kill_and_start(start: Start, servers: list[Server]) -> None:
    """Kill one server, at any moment, and put another in its place."""
    victim = random.randrange(len(servers))
    servers[victim].kill()
    servers[victim] = start.server(**SETTINGS)


def chaos(start: Start, kills: int) -> Counter[str]:
    """Kill so many servers under load; return how the jobs ended."""
    servers = [start.server(**SETTINGS) for _ in range(SERVERS)]
    client = Client(servers)
    client.start()
    for n in range(kills):
        before = len(client.accepted)
        wanted = random.randint(1, 10)
        eventually(lambda b=before, w=wanted: len(client.accepted) >= b + w, 60)  # type: ignore[misc]
        kill_and_start(start, servers)
        sys.stdout.write(f"\r{n + 1} of {kills} killed, {len(client.accepted)} jobs accepted")
        sys.stdout.flush()
    client.done.set()
    client.join()
    sys.stdout.write("\n")
    return Counter(check(servers[0], job_id) for job_id in client.accepted)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked: Any = parser.parse_args()
    random.seed(asked.seed)
    sys.stdout.write(f"seed {asked.seed}\n")
    with ExitStack() as stack:
        server_url = stack.enter_context(databases.postgres_server(uuid.uuid4().hex))
        url = stack.enter_context(databases.fresh_postgres(server_url))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        start = stack.enter_context(starting(folder, ADE_DATABASE_URL=url))
        for ending, jobs in sorted(chaos(start, asked.kills).items()):
            sys.stdout.write(f"{jobs:6d}  {ending}\n")


if __name__ == "__main__":
    main()
