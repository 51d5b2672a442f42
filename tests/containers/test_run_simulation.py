"""`POST /run-simulation` with agents and containers: the tutorial for two hosts, on one machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.container_engine import IMAGE, Engine
from tests.processes import eventually
from tests.system.server import Server, Start, starting

LONG = 120.0  # a busy machine is ten times slower
SIMULATE = (
    'echo "reads $1"; busybox cat "$1"; echo \'{"kpi": 42}\' > /data/jobs/$2/results/result.json'
)


class Hosts:
    """Hold a server, its shared folder, and two agents that share it."""

    def __init__(self, start: Start, server: Server, shared: Path, engine: Engine) -> None:
        self.server = server
        self.shared = shared
        for name in ("host-a", "host-b"):
            enrolling = start.command("agents", "enrol", name, "--label", f"on-{name}", "--json")
            code = enrolling.said(r"adec_[\w-]+")[0]
            options = ["--server", server.url, "--name", name, "--code", code]
            options += ["--state-dir", str(start.folder / name)]
            options += ["--engine", engine.url, "--shared-folder", str(shared)]
            options += ["--watch-seconds", "0.2", "--heartbeat-seconds", "0.5"]
            start.command("agent", *options).said(f"agent {name} is ready")

    def submit(self, *command: str, **more: Any) -> str:
        """Submit a job that must be accepted."""
        body = {"config": {"steps": 3}, "image": IMAGE, "pull": "never", "command": list(command)}
        answer = self.server.http.post("/run-simulation", json=body | more)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["job_id"])

    def reaches(self, job_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until a job has one of these statuses."""

        def look() -> dict[str, Any] | None:
            found = dict(self.server.http.get(f"/status/{job_id}").json())
            assert found["status"] not in {"finished", "failed", "stopped"} - set(statuses), found
            return found if found["status"] in statuses else None

        return eventually(look, LONG)


@pytest.fixture(scope="module")
def hosts(podman: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("hosts")
    shared = folder / "shared"
    with starting(folder, VM_SHARED_DATA=shared) as start:
        yield Hosts(start, start.server_without_worker(), shared, podman)


def test_a_simulation_runs_on_the_host_that_it_requires(hosts: Hosts) -> None:
    job_id = hosts.submit(
        "/bin/sh", "-c", SIMULATE, "simulate", "/data/configs/demo.yaml", "{job_id}",
        save_as="demo.yaml", target_host="host-b", require_host=True,
    )  # fmt: skip
    done = hosts.reaches(job_id, "finished")
    assert (done["worker_id"], done["exit_code"]) == ("host-b", 0)
    assert done["container_id"]
    get = hosts.server.http.get
    assert get(f"/logs/{job_id}").text == "reads /data/configs/demo.yaml\nsteps: 3\n"
    assert get(f"/result/{job_id}").json() == {"kpi": 42}
    status = hosts.shared / "jobs" / job_id / "status.json"
    eventually(lambda: json.loads(status.read_text())["status"] == "finished", LONG)


def test_a_simulation_is_stopped_with_its_container(hosts: Hosts, podman: Engine) -> None:
    job_id = hosts.submit("/bin/busybox", "sleep", "3600", stop_grace_seconds=0.1)
    hosts.reaches(job_id, "running")
    assert hosts.server.http.post(f"/stop/{job_id}").json()["status"] == "stop_requested"
    hosts.reaches(job_id, "stopped")
    eventually(lambda: not podman.running(), LONG)


def test_a_simulation_that_fails_says_how(hosts: Hosts) -> None:
    job_id = hosts.submit("/bin/sh", "-c", "echo no >&2; exit 3")
    assert hosts.reaches(job_id, "failed")["exit_code"] == 3
    assert hosts.server.http.get(f"/file-logs/{job_id}").text == "no\n"


def test_a_simulation_goes_to_the_host_with_its_label(hosts: Hosts) -> None:
    job_id = hosts.submit("/bin/busybox", "true", labels=["on-host-a"])
    assert hosts.reaches(job_id, "finished")["worker_id"] == "host-a"
    online = hosts.server.http.get("/hosts").json()["hosts"]
    assert {name: host["status"] for name, host in online.items()} == {
        "host-a": "online",
        "host-b": "online",
    }
