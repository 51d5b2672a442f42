"""Start an HTTP server on the measured core, load it from the other one, and stop it again.

A server under test is described by an HttpContestant; ADE's own stand beside FastAPI alone.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, ClassVar

from bench.cases import Database, Sample
from bench.child import RunFailed, kill_group, start_group
from bench.http_load import BODY
from bench.pinning import MEASURED_CORE, pin_tree

START_SECONDS_MAX = 30
LOAD_SECONDS_SPARE = 30


@dataclass(frozen=True)
class HttpCase:
    """So many jobs in each request; fewer connections when a request is large."""

    jobs_a_request: int
    connections: int

    @property
    def label(self) -> str:
        if self.jobs_a_request == 1:
            return "POST one job a request"
        return f"POST {self.jobs_a_request:,} jobs a request"


HTTP_CASES = (HttpCase(1, 32), HttpCase(100, 16), HttpCase(500, 16))


class HttpContestant:
    """A server under test. `database` asks for a fresh one, whose URL `command` is given."""

    name: ClassVar[str]
    database: ClassVar[Database | None] = None
    path: ClassVar[str]
    batch_path: ClassVar[str]
    token: ClassVar[str] = ""
    body: ClassVar[str] = BODY

    def command(self, port: int, url: str) -> list[str]:
        """The command that serves on 127.0.0.1:port. It may not fork into the background."""
        raise NotImplementedError

    def environment(self, url: str) -> Mapping[str, str]:
        """Variables to set for the server."""
        return {}


class FastApiAlone(HttpContestant):
    name = "FastAPI alone"
    path = "/jobs"
    batch_path = "/jobs/batch"

    def command(self, port: int, url: str) -> list[str]:
        options = "--loop uvloop --http httptools --no-access-log --log-level warning --workers 1"
        app = "bench.http_baseline:app"
        return [sys.executable, "-m", "uvicorn", app, "--port", str(port), *options.split()]


def once(contestant: HttpContestant, case: HttpCase, url: str, seconds: float) -> Sample:
    """Serve, load, and count the jobs that were accepted."""
    with serving(contestant, url) as address:
        path = contestant.path if case.jobs_a_request == 1 else contestant.batch_path
        outcome = load(contestant, address + path, case, seconds)
    statuses = {int(status): times for status, times in outcome["statuses"].items()}
    if not statuses or any(not 200 <= status < 300 for status in statuses):
        raise RunFailed(f"answers were {statuses}, {outcome['broken_connections']} broken")
    jobs = sum(statuses.values()) * case.jobs_a_request
    return Sample(jobs, outcome["seconds"], tuple(outcome["latencies_seconds"]))


@contextmanager
def serving(contestant: HttpContestant, url: str) -> Iterator[str]:
    """Run the server until the block ends; it and its children are killed whatever happens."""
    port = free_port()
    environment = {**os.environ, **contestant.environment(url)}
    with tempfile.TemporaryFile("w+") as log:  # an unread pipe would fill up
        command = contestant.command(port, url)
        process = start_group(command, env=environment, stdout=log, stderr=log)
        try:
            wait_until_open(port, process, log)
            pin_tree(MEASURED_CORE, process.pid)
            yield f"http://127.0.0.1:{port}"
        finally:
            kill_group(process)


def load(contestant: HttpContestant, url: str, case: HttpCase, seconds: float) -> dict[str, Any]:
    options = {
        "--url": url,
        "--token": contestant.token,
        "--body": contestant.body,
        "--jobs-a-request": str(case.jobs_a_request),
        "--connections": str(case.connections),
        "--seconds": str(seconds),
    }
    words = [word for option in options.items() for word in option]
    generator = start_group(
        [sys.executable, "-m", "bench.http_load", "--json", *words], stdout=subprocess.PIPE
    )
    try:
        output, _ = generator.communicate(timeout=seconds + LOAD_SECONDS_SPARE)
        return json.loads(output)
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        raise RunFailed(f"the load generator gave nothing usable: {error}") from error
    finally:
        kill_group(generator)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_until_open(port: int, process: subprocess.Popen[str], log: IO[str]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            raise RunFailed(f"the server ended: {log.read()[-500:]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RunFailed(f"the server did not listen within {START_SECONDS_MAX} s")
