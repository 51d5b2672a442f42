"""Real `ade` processes: started, watched, stopped or killed, and always buried."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from tests.processes import eventually

ADE = str(Path(sys.executable).parent / "ade")
KEY = "ade_system_test_key"
JOBS = "/api/v1/workspaces/default/jobs"
START_SECONDS = 120.0  # a busy machine is ten times slower
END_SECONDS = 30.0
ENDED = {"succeeded", "failed", "timed_out", "cancelled"}
# As short as they may be on a busy machine; the defaults are five times as long.
SHORT_LEASE = {
    "ADE_LEASE_SECONDS": "3",
    "ADE_LEASE_MARGIN_SECONDS": "1",
    "ADE_RENEW_SECONDS": "0.5",
    "ADE_SWEEP_SECONDS": "0.2",
}


def environment(data_dir: Path, **settings: object) -> dict[str, str]:
    """Make the environment of a process: nothing of ours but what is given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ADE_")}
    ours = {
        "ADE_STORAGE_DATA_DIR": str(data_dir),
        "ADE_BOOTSTRAP_API_KEY": KEY,
        "ADE_LOG_FORMAT": "json",
        "ADE_IDLE_WARMUP_SECONDS": "0",  # most tests are over before it is of use
        "ADE_WORKER_NICE": "1",  # nicer ones would starve beside the tests of other processes
    }
    given = clean | ours | {name: str(value) for name, value in settings.items()}
    return {name: value for name, value in given.items() if value}


class Process:
    """Run one `ade` process and keep its output."""

    def __init__(
        self, command: list[str], env: dict[str, str], folder: Path, under: Sequence[str] = ()
    ) -> None:
        self._popen = subprocess.Popen(
            [*under, ADE, *command],
            env=env,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.pid = self._popen.pid
        self._lines: list[str] = []
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            with self._heard:
                self._lines.append(line)
                self._heard.notify_all()
        with self._heard:
            self._heard.notify_all()

    @property
    def output(self) -> str:
        """Return all that it wrote so far."""
        with self._heard:
            return "".join(self._lines)

    def said(self, pattern: str, seconds: float = START_SECONDS) -> "re.Match[str]":
        """Wait until it has said something."""

        def look() -> "re.Match[str] | None":
            return re.search(pattern, "".join(self._lines))

        with self._heard:
            self._heard.wait_for(lambda: look() or not self._reader.is_alive(), seconds)
            found = look()
        assert found, f"it did not say {pattern!r}:\n{self.output}"
        return found

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def ended(self, seconds: float = END_SECONDS) -> int:
        """Wait for its end and return its exit code."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end:\n{self.output}") from None

    @property
    def is_alive(self) -> bool:
        """Tell whether it has not ended."""
        return self._popen.poll() is None

    def stop(self, seconds: float = END_SECONDS) -> int:
        """Ask it to end, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.ended(seconds)

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self._popen.kill()
        self._popen.wait()

    def bury(self) -> None:
        """Leave nothing behind."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGCONT)
            self.kill()
        self._reader.join(10)  # a child that outlived it would hold the pipe open
        if self._popen.stdout is not None and not self._reader.is_alive():
            self._popen.stdout.close()


class Worker(Process):
    """Run `ade worker`."""

    def __init__(self, env: dict[str, str], folder: Path, under: Sequence[str] = ()) -> None:
        super().__init__(["worker"], env, folder, under)
        self.name = self.said(r"worker (\S+) is ready")[1]


class RemoteWorker(Process):
    """Run `ade worker` for a server, with a data folder of its own and no database."""

    def __init__(self, env: dict[str, str], folder: Path, url: str, *options: str) -> None:
        data_dir = Path(env["ADE_STORAGE_DATA_DIR"])
        key_file = folder / f"{data_dir.name}.key"
        key_file.write_text(f"{KEY}\n")
        command = ["worker", "--server", url, "--key-file", str(key_file), "--name", data_dir.name]
        super().__init__([*command, *options], env, folder)
        self.data_dir = data_dir
        self.name = self.said(r"worker (\S+) is ready")[1]


class Server(Process):
    """Run `ade serve`, with a client that holds the first key."""

    options: Sequence[str] = ()

    def __init__(self, env: dict[str, str], folder: Path, under: Sequence[str] = ()) -> None:
        command = ["serve", "--port", env.get("ADE_PORT", "0"), *self.options]
        super().__init__(command, env, folder, under)
        self.url = self.said(r"is ready: (http://[^/\s]+)")[1]
        self.http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=30,
            transport=httpx.HTTPTransport(retries=3),
        )

    def bury(self) -> None:
        """Leave nothing behind."""
        with contextlib.suppress(AttributeError):  # it may not have become ready
            self.http.close()
        super().bury()

    def submit(self, limits: dict[str, int] | None = None, **inputs: Any) -> dict[str, Any]:
        """Submit an echo that must be accepted; no two are the same work."""
        answer = self.http.post(JOBS, json=echo(limits, **inputs))
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def job(self, job: dict[str, Any]) -> dict[str, Any]:
        """Read a job."""
        answer = self.http.get(f"{JOBS}/{job['job_id']}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def result(self, job: dict[str, Any]) -> dict[str, Any]:
        """Read the result of a job."""
        answer = self.http.get(f"{JOBS}/{job['job_id']}/result")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def events(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """Read a job's log so far."""
        answer = self.http.get(f"{JOBS}/{job['job_id']}/events")
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def log(self, job: dict[str, Any]) -> list[str]:
        """Read a job's log so far, only the words."""
        return [event["event"] for event in self.events(job)]

    def wait(
        self, job: dict[str, Any], when: Callable[[dict[str, Any]], Any], seconds: float = 60
    ) -> dict[str, Any]:
        """Wait until something is true of a job."""

        def look() -> dict[str, Any] | None:
            found = self.job(job)
            return found if when(found) else None

        found = eventually(look, seconds)
        assert found is not None
        return found

    def ended_job(self, job: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
        """Wait for a job's end."""
        return self.wait(job, lambda found: found["status"] in ENDED, seconds)

    def running_job(self, job: dict[str, Any]) -> dict[str, Any]:
        """Wait until a job's child has said something: it really runs."""
        return self.wait(job, lambda found: found["status"] == "running" and found["progress"])

    def metric(self, name: str, **labels: str) -> float:
        """Read the sum of a metric."""
        answer = self.http.get("/metrics")
        assert answer.status_code == 200, answer.text
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in answer.text.splitlines()
            if re.match(rf"{name}[ {{]", line) and all(want in line for want in wanted)
        )


class ServerWithoutWorker(Server):
    """Run `ade serve --no-worker`: others run its jobs."""

    options = ("--no-worker",)


def echo(limits: dict[str, int] | None = None, **inputs: Any) -> dict[str, Any]:
    """Ask for an echo that is no one else's."""
    body = {"job_type": "echo", "document_revision_id": os.urandom(8).hex(), "inputs": inputs}
    return body | ({"limits": limits} if limits else {})


def long_echo(seconds: float, value: Any = "done") -> dict[str, Any]:
    """Say the inputs of an echo that takes its time and reports at once."""
    steps = min(max(2, int(seconds * 20)), 10_000)
    return {"value": value, "sleep_ms": int(seconds * 1000), "steps": steps}


def mirrored(folder: Path, events: int) -> list[dict[str, Any]]:
    """Wait until a job's file has so many events, which is after their commit; return them."""
    file = folder / "events.ndjson"
    eventually(lambda: file.exists() and file.read_text().count("\n") >= events)
    return [json.loads(line) for line in file.read_text().splitlines()]


class Start:
    """Start processes in one data folder; all are buried at the end.

    `under` is a command that starts them in its own way: as another user, with fewer rights.
    """

    def __init__(self, folder: Path, under: Sequence[str] = (), **settings: object) -> None:
        self.folder = folder
        self.under = under
        self.data_dir = folder / "data"
        self.settings = settings
        self._processes: list[Process] = []

    def environment(self, **settings: object) -> dict[str, str]:
        """Make the environment of a process that shares the folder."""
        return environment(self.data_dir, **self.settings | settings)

    def server(self, **settings: object) -> Server:
        """Start `ade serve` and wait until it is ready."""
        return self._kept(Server, **settings)

    def server_without_worker(self, **settings: object) -> Server:
        """Start `ade serve --no-worker` and wait until it is ready."""
        return self._kept(ServerWithoutWorker, **settings)

    def worker(self, **settings: object) -> Worker:
        """Start `ade worker` and wait until it is ready."""
        return self._kept(Worker, **settings)

    def remote_worker(
        self, url: str, *options: str, name: str = "agent", **settings: object
    ) -> RemoteWorker:
        """Start a worker that reaches nothing but a server, and wait until it is ready."""
        made = RemoteWorker.__new__(RemoteWorker)
        self._processes.append(made)
        environ = environment(self.folder / name, ADE_POLL_SECONDS=0.1, **settings)
        made.__init__(environ, self.folder, url, *options)  # type: ignore[misc]
        return made

    def command(self, *command: str, **settings: object) -> Process:
        """Start any command."""
        process = Process(list(command), self.environment(**settings), self.folder, self.under)
        self._processes.append(process)
        return process

    def _kept(self, kind: Any, **settings: object) -> Any:
        made = kind.__new__(kind)
        self._processes.append(made)
        made.__init__(self.environment(**settings), self.folder, self.under)
        return made

    def end(self) -> None:
        """Bury everything."""
        for process in self._processes:
            with contextlib.suppress(AttributeError):  # one that could not even be started
                process.bury()


@contextlib.contextmanager
def starting(folder: Path, under: Sequence[str] = (), **settings: object) -> Iterator[Start]:
    """Start processes while inside."""
    start = Start(folder, under, **settings)
    try:
        yield start
    finally:
        start.end()
