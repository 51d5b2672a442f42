"""A real `ade serve` process for tests, and a small client to it."""

import contextlib
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

WORKSPACE = "default"
ENDED = frozenset({"succeeded", "failed", "timed_out", "cancelled"})
# What the server takes from the environment of the tests.
PASSED_ON = ("ADE_SANDBOX",)
START_SECONDS = 60.0
STOP_SECONDS = 30.0
OUTPUT_LINES_MAX = 1000
REQUEST_SECONDS = 30.0


class AdeServer:
    """Speak to a running server as its first user, who may do everything."""

    def __init__(self, url: str, key: str, data_dir: Path) -> None:
        self.url = url
        self.key = key
        self.data_dir = data_dir
        self.workspace = WORKSPACE
        self.client = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=REQUEST_SECONDS,
            transport=httpx.HTTPTransport(retries=3),
        )

    def path(self, rest: str) -> str:
        """Return a path below the workspace, such as that of `jobs`."""
        return f"/api/v1/workspaces/{self.workspace}/{rest}"

    def submit(
        self, job_type: str, inputs: Mapping[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Submit a job and return it as it was accepted; raise if it was refused.

        Jobs that ask for the same work share one execution; `document_revision_id` is a new one for
        each call unless it is given, so that every job runs.
        """
        body = {
            "job_type": job_type,
            "document_revision_id": secrets.token_hex(8),
            "inputs": dict(inputs or {}),
            **fields,
        }
        return _body(self.client.post(self.path("jobs"), json=body))

    def job(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Read a job."""
        return _body(self.client.get(self.path(f"jobs/{job['job_id']}")))

    def wait(self, job: Mapping[str, Any], seconds: float = 60.0) -> dict[str, Any]:
        """Wait for the end of a job and return the job; raise TimeoutError if it takes too long.

        It follows the job's events, so it returns as soon as the job has ended.
        """
        deadline = time.monotonic() + seconds
        while (found := self.job(job))["status"] not in ENDED:
            self._follow(job, deadline)
            if time.monotonic() >= deadline:
                raise TimeoutError(f"Job {job['job_id']} is {found['status']} after {seconds} s.")
        return found

    def result(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Read the result of a job that has ended."""
        return _body(self.client.get(self.path(f"jobs/{job['job_id']}/result")))

    def _follow(self, job: Mapping[str, Any], deadline: float) -> None:
        """Read the events of a job until there are no more, or until the deadline."""
        left = max(deadline - time.monotonic(), 0.1)
        accept = {"Accept": "text/event-stream"}
        events = self.path(f"jobs/{job['job_id']}/events")
        with (
            contextlib.suppress(httpx.ReadTimeout),
            self.client.stream("GET", events, headers=accept, timeout=left) as stream,
        ):
            for _ in stream.iter_lines():
                if time.monotonic() >= deadline:
                    return


@contextlib.contextmanager
def running_server(folder: Path, settings: Mapping[str, str]) -> Iterator[AdeServer]:
    """Run `ade serve` in a folder while inside; raise RuntimeError with its output if it fails."""
    key = "ade_" + secrets.token_hex(32)
    data_dir = folder / "data"
    process = subprocess.Popen(
        [sys.executable, "-m", "ade", "serve", "--host", "127.0.0.1", "--port", "0"],
        env=_environment(data_dir, key, settings),
        cwd=folder,  # a .env file of the project under test is not read
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = _Output(process)
    try:
        server = AdeServer(output.address(), key, data_dir)
        with server.client:
            yield server
    finally:
        _stop(process)
        output.close()


class _Output:
    """Read all that a server writes, so that it never waits for a reader; keep the last lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: deque[str] = deque(maxlen=OUTPUT_LINES_MAX)
        self._url: str | None = None
        self._said = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def address(self) -> str:
        """Wait for the line that says where the server listens."""
        self._said.wait(START_SECONDS)
        if self._url is None:
            raise RuntimeError("`ade serve` did not start:\n" + "".join(self._lines))
        return self._url

    def close(self) -> None:
        """Wait for the end of the output of a server that has stopped."""
        self._thread.join(STOP_SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                self._lines.append(line)
                if found := re.search(r"is ready: (http://[^/\s]+)", line):
                    self._url = found[1]
                    self._said.set()
        self._said.set()


def _environment(data_dir: Path, key: str, settings: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or not name.startswith("ADE_")
    }
    ours = {
        "ADE_STORAGE_DATA_DIR": str(data_dir),
        "ADE_BOOTSTRAP_API_KEY": key,
        "ADE_IDLE_WARMUP_SECONDS": "0",  # a test is over before it is of use
    }
    return kept | ours | dict(settings)


def _stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _body(answer: httpx.Response) -> dict[str, Any]:
    """Return the body of an answer; raise HTTPStatusError with the reason if it is an error."""
    if answer.is_error:
        reason = f"{answer.status_code}: {answer.text}"
        raise httpx.HTTPStatusError(reason, request=answer.request, response=answer)
    body: dict[str, Any] = answer.json()
    return body
