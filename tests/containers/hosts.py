"""Real processes for the tests of agents: a server on a port of its own, and agents over Podman."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from tests.container_engine import IMAGE, Engine
from tests.processes import eventually
from tests.system.server import ENDED, JOBS, KEY, Process, environment

WAIT_SECONDS = 180.0


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


class Cluster:
    """Start a server and agents, again and again; all are buried at the end."""

    def __init__(
        self, folder: Path, engine: Engine, address: str = "127.0.0.1", **settings: object
    ) -> None:
        self.folder = folder
        self.engine = engine
        self.port = free_port()
        self.url = f"http://{address}:{self.port}"
        self.http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30
        )
        listens = {"ADE_HOST": address, "ADE_PORT": self.port, "ADE_QUEUE_SIZE": 0}
        self._settings = {**listens, **settings}
        self._processes: list[Process] = []
        self._server: Process | None = None
        self._key_file = folder / "operator-key"
        self._key_file.write_text(KEY)

    def serves(self) -> Process:
        """Return the server, which is started if it does not run: on the same port and folder."""
        if self._server is None or not self._server.is_alive:
            env = environment(self.folder / "data", **self._settings)
            self._server = self._kept(["serve"], env, r"is ready: http")
        return self._server

    def agent(self, name: str, *options: str, under: Sequence[str] = ()) -> Process:
        """Start an agent, with the same state each time; `under` is a command that starts it."""
        env = environment(self.folder / "nothing")
        command = ["agent", "--server", self.url, "--name", name, "--watch-seconds", "0.3"]
        command += ["--key-file", str(self._key_file), "--engine", self.engine.url]
        command += ["--state-dir", str(self.folder / f"state-{name}"), *options]
        return self._kept(command, env, rf"agent {name} is ready", under)

    def _kept(
        self, command: list[str], env: dict[str, str], says: str, under: Sequence[str] = ()
    ) -> Process:
        process = Process(command, env, self.folder, under)
        self._processes.append(process)
        process.said(says)
        return process

    def submit(self, script: str, limits: dict[str, int] | None = None, **inputs: Any) -> str:
        """Submit a container that runs a script, and return the id of its job."""
        asked = {"image": IMAGE, "command": ["/bin/sh", "-c", script], **inputs}
        body = {"job_type": "container", "inputs": asked, "limits": limits or {}}
        answer = self.http.post(JOBS, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """Read a job."""
        return dict(self.http.get(f"{JOBS}/{job_id}").json())

    def status(self, job_id: str) -> dict[str, Any]:
        """Read the status of a job in the words of the worker contract."""
        return dict(self.http.get(f"/status/{job_id}").json())

    def log(self, job_id: str) -> bytes:
        """Read the output of a job."""
        return self.http.get(f"{JOBS}/{job_id}/logs").content

    def log_size(self, job_id: str) -> int:
        """Return how much output of a job the server has, by its own file."""
        file = self.folder / "data" / "shared" / "jobs" / job_id / "logs" / f"{job_id}.log"
        return file.stat().st_size if file.exists() else 0

    def said(self, job_id: str, text: bytes) -> None:
        """Wait until the output of a job has a text in it."""
        eventually(lambda: text in self.log(job_id), WAIT_SECONDS)

    def ended(self, job_id: str) -> dict[str, Any]:
        """Wait for the end of a job."""

        def look() -> dict[str, Any] | None:
            found = self.job(job_id)
            return found if found["status"] in ENDED else None

        found = eventually(look, WAIT_SECONDS)
        assert found is not None
        return found

    def end_agents(self) -> None:
        """Kill the agents, and remove what they may have left."""
        for process in self._processes:
            if process is not self._server:
                process.bury()
        self._processes = [self._server] if self._server is not None else []
        self.engine.podman("rm", "-af", "-t", "0")

    def end(self) -> None:
        """Bury everything."""
        self.http.close()
        for process in self._processes:
            with contextlib.suppress(AttributeError):
                process.bury()


@contextlib.contextmanager
def cluster(
    folder: Path, engine: Engine, address: str = "127.0.0.1", **settings: object
) -> Iterator[Cluster]:
    """Start processes while inside."""
    made = Cluster(folder, engine, address, **settings)
    try:
        yield made
    finally:
        made.end()
