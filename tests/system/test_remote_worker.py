"""A worker that reaches nothing but a real server, over HTTP: no database, no storage."""

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import eventually, jobs_of
from tests.system import cells, runs
from tests.system.server import JOBS, SHORT_LEASE, RemoteWorker, Server, Start, long_echo, starting

LEAVES = "open('artifacts/note.txt', 'w').write('left behind')\n40 + 2"


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start processes that several tests use."""
    with starting(tmp_path_factory.mktemp("remote")) as start:
        yield start


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    """Start a server that runs nothing itself."""
    return start.server_without_worker(**SHORT_LEASE)


@pytest.fixture(scope="module")
def worker(start: Start, server: Server) -> RemoteWorker:
    """Start a worker for runs and cells."""
    return start.remote_worker(server.url, "--kinds", "normalize,build,object_execute")


def worker_of(server: Server, job: dict[str, Any]) -> list[str]:
    """List who ran a job, one entry for each attempt."""
    found = server.http.get(f"{JOBS}/{job['job_id']}/attempts").json()["items"]
    return [attempt["worker"] for attempt in found]


def test_runs_and_cells_are_those_of_a_local_worker(
    server: Server, worker: RemoteWorker, tmp_path: Path
) -> None:
    run = runs.succeeded(server, runs.configured(server), runs.uploaded(server))
    assert runs.output(server, run, tmp_path) == runs.expected(tmp_path)
    found = cells.run(server, LEAVES)
    assert found["outputs"]["result_json"] == 42
    (left,) = found["artifacts"]
    content = server.http.get(f"/api/v1/artifacts/{left['artifact_id']}/content").content
    assert content == b"left behind"
    assert left["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    for job in (runs.job_of(run), found["job"]):
        assert worker_of(server, job) == [worker.name]
    assert not (worker.data_dir / "ade.db").exists()
    fetched = [path.name for path in (worker.data_dir / "blobs" / "sha256").glob("*/*")]
    assert hashlib.sha256(runs.SAMPLE.read_bytes()).hexdigest() in fetched


def test_what_it_prints_is_read_from_the_server(server: Server, worker: RemoteWorker) -> None:
    job = cells.begin(server, "import time\nprint('said', flush=True)\ntime.sleep(600)")
    logs = f"{JOBS}/{job['job_id']}/logs"
    eventually(lambda: "said" in server.http.get(logs).text, 60)
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    assert server.ended_job(job)["status"] == "cancelled"
    assert "said" in server.http.get(logs).text


def test_a_late_upload_and_a_late_end_are_refused(start: Start, server: Server) -> None:
    """A worker that was frozen for longer than its lease comes back with an old fence."""
    frozen = start.remote_worker(server.url, "--kinds", "echo", name="frozen")
    job = server.submit(**long_echo(600))
    server.running_job(job)
    frozen.signal(signal.SIGSTOP)
    other = start.remote_worker(server.url, "--kinds", "echo", name="other")
    eventually(lambda: worker_of(server, job) == ["frozen", "other"], 60)
    workspace, fence = attempt_of(server, job)
    content = b"late"
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    place = f"/api/agent/files/{workspace}/{job['job_id']}"
    late = put(server, f"{place}/{fence - 1}/{digest}", content, "frozen")
    assert (late.status_code, late.json()["code"]) == (409, "lease_lost")
    spoilt = put(server, f"{place}/{fence}/{digest}", b"spoilt", "other")
    assert (spoilt.status_code, spoilt.json()["code"]) == (422, "validation_error")
    assert not list(start.data_dir.glob(f"blobs/sha256/*/{digest[7:]}"))
    frozen.signal(signal.SIGCONT)
    eventually(lambda: not jobs_of(frozen.pid), 60)  # it gave up, and said nothing more
    assert server.job(job)["status"] == "running"
    assert worker_of(server, job) == ["frozen", "other"]
    assert frozen.stop() == 0
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    assert server.ended_job(job)["status"] == "cancelled"
    assert other.stop() == 0


def attempt_of(server: Server, job: dict[str, Any]) -> tuple[str, int]:
    """Return the workspace of a job and the fence of its newest attempt."""
    workspace = server.http.get("/api/v1/workspaces/default").json()["workspace_id"]
    items = server.http.get(f"{JOBS}/{job['job_id']}/attempts").json()["items"]
    return workspace, items[-1]["attempt"]


def put(server: Server, place: str, content: bytes, name: str) -> Any:
    """Send a file as an agent does."""
    return server.http.put(place, content=content, headers={"Agent-Name": name})


def test_a_server_that_restarts_costs_no_result(tmp_path: Path) -> None:
    with starting(tmp_path) as start:
        _restart(start)


def _restart(start: Start) -> None:
    patient = {"ADE_LEASE_SECONDS": 120}  # longer than a busy machine takes to start a server
    first = start.server_without_worker(**patient)
    start.remote_worker(first.url)
    job = first.submit(**long_echo(3, value="kept"))
    first.running_job(job)
    first.kill()
    second = start.server_without_worker(ADE_PORT=first.url.rpartition(":")[2], **patient)
    assert second.ended_job(job)["status"] == "succeeded"
    assert worker_of(second, job) == ["agent"]


def test_an_enrolled_agent_takes_sandboxed_jobs(start: Start, server: Server) -> None:
    enrolled = server.http.post("/api/v1/agents", json={"name": "host-1"})
    assert enrolled.status_code == 201, enrolled.text
    (start.folder / "host-1.key").write_text(enrolled.json()["key"])
    state = start.folder / "state"
    command = ["agent", "--server", server.url, "--name", "host-1", "--key-file", "host-1.key"]
    command += ["--state-dir", str(state), "--no-containers", "--kinds", "echo"]
    agent = start.command(*command, ADE_STORAGE_DATA_DIR="")
    agent.said(r"agent host-1 is ready: 2 slots in the sandbox")
    job = server.submit(value="enrolled")
    assert server.ended_job(job)["status"] == "succeeded"
    assert worker_of(server, job) == ["host-1"]
    assert agent.stop() == 0
    assert not list((state / "sandboxed" / "jobs").iterdir())


def test_a_key_that_is_not_valid_ends_the_start(start: Start, server: Server) -> None:
    (start.folder / "wrong.key").write_text("ade_wrong\n")
    command = ("worker", "--server", server.url, "--key-file", "wrong.key", "--name", "a")
    worker = start.command(*command, ADE_STORAGE_DATA_DIR=start.folder / "a")
    assert worker.ended() == 4
    assert "Traceback" not in worker.output
    assert "ade_wrong" not in worker.output
