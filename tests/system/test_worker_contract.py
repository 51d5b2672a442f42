"""The worker contract as a black box: a real server, and workers that know its text alone.

Workers are the program `contract/plain_worker.py`, or requests that are sent here one by one.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.processes import eventually
from tests.system.server import KEY, Server, Start, starting

PROGRAM = Path(__file__).parent / "contract" / "plain_worker.py"
LONG = 120.0  # a busy machine is ten times slower
STEPS = """\
import json, pathlib, sys, time
job = pathlib.Path(sys.argv[1]) / "jobs" / sys.argv[2]
for folder in ("progress", "results"):
    (job / folder).mkdir(parents=True, exist_ok=True)
(job / "progress" / "progress.json").write_text(json.dumps({"step": 1, "of": 1}))
(job / "results" / "result.json").write_text(json.dumps({"kpi": 42}))
print("simulated", sys.argv[2])
"""
SHORT_TTL = {
    "QUEUE_CLAIM_TTL": 5,
    "HOST_HEARTBEAT_TTL": 5,
    "WORKER_STALE_GRACE_SECONDS": 1,
    "JOB_STATUS_TTL": 4,
    "ADE_SWEEP_SECONDS": 0.1,
}


class Contract:
    """Send requests of the contract, and start workers."""

    def __init__(self, server: Server, shared: Path) -> None:
        self.http = server.http
        self.url = server.url
        self.shared = shared

    def submit(self, *command: str, **more: Any) -> str:
        """Submit a job that must be accepted, as programs do that know of no keys."""
        body = {"config": {"steps": 3}, **({"command": list(command)} if command else {}), **more}
        answer = httpx.post(f"{self.url}/run-simulation", json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"job_id", "status", "host", "job_name"}
        return str(answer.json()["job_id"])

    def status(self, job_id: str) -> dict[str, Any]:
        """Read the status of a job."""
        return dict(self.http.get(f"/status/{job_id}").json())

    def reaches(self, job_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until a job has one of these statuses."""

        def look() -> dict[str, Any] | None:
            found = self.status(job_id)
            return found if found["status"] in statuses else None

        return eventually(look, LONG)

    def next_job(self, worker: str) -> dict[str, Any] | None:
        """Ask for a job; None is the answer 204."""
        answer = self.http.post("/api/agent/next-job", json={"worker_id": worker})
        assert answer.status_code in (200, 204), answer.text
        return dict(answer.json()) if answer.status_code == 200 else None

    def take(self, worker: str, job_id: str) -> None:
        """Take a job that must be there."""
        job = eventually(lambda: self.next_job(worker), LONG)
        assert job["job_id"] == job_id

    def say(self, worker: str, job_id: str, status: str, **more: Any) -> httpx.Response:
        """Report on a job."""
        body = {"job_id": job_id, "status": status, "worker_id": worker, **more}
        return self.http.post("/api/agent/job-status", json=body)

    def file(self, job_id: str, name: str) -> dict[str, Any]:
        """Read a file that the server writes for a job."""
        return dict(json.loads((self.shared / "jobs" / job_id / name).read_text()))

    def registered(self, job_id: str) -> str | None:
        """Read the status of a job in the registry."""
        registry = self.shared / "job_track.json"
        known = json.loads(registry.read_text()) if registry.exists() else {}
        return known[job_id]["status"] if job_id in known else None

    @contextlib.contextmanager
    def worker(self, name: str, key: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """Run the program of a worker while inside, without a key unless one is given."""
        environ = {"PATH": os.environ["PATH"], "SERVER": self.url, "WORKER_ID": name}
        environ |= {"SHARED": str(self.shared), "KEY": key}
        process = subprocess.Popen([sys.executable, str(PROGRAM)], env=environ)
        try:
            yield process
            assert process.poll() is None, f"the worker has ended with {process.poll()}"
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONG) == 0
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Contract]:
    shared = folder / "shared"
    with starting(folder, VM_SHARED_DATA=shared, **settings) as start:
        yield Contract(start.server_without_worker(), shared)


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contract]:
    """Serve with the settings of the contract's defaults."""
    with serving(tmp_path_factory.mktemp("contract")) as contract:
        yield contract


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path, VM_SHARED_DATA=tmp_path / "shared") as start:
        yield start


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


# --- with the program -----------------------------------------------------------------------------


def test_a_job_finishes_with_log_progress_and_result(contract: Contract) -> None:
    job_id = contract.submit(
        *python(STEPS, "/data", "{job_id}"), target_host="w1", save_as="d.yaml"
    )
    queued = json.loads((contract.shared / "queue" / f"{job_id}.json").read_text())
    assert queued == {"job_id": job_id, "preferred_host": "w1", "require_host": False}
    with contract.worker("w1"):
        done = contract.reaches(job_id, "finished")
    assert (done["worker_id"], done["exit_code"]) == ("w1", 0)
    get = contract.http.get
    assert get(f"/progress/{job_id}").json() == {"step": 1, "of": 1}
    assert get(f"/result/{job_id}").json() == {"kpi": 42}
    for path in ("logs", "file-logs"):
        assert get(f"/{path}/{job_id}").text == f"simulated {job_id}\n"
    info = get(f"/job-info/{job_id}").json()
    assert (info["config_path"], info["target_host"]) == ("configs/d.yaml", "w1")
    assert info["container_id"].startswith("process-")
    assert not (contract.shared / "queue" / f"{job_id}.json").exists()
    eventually(lambda: contract.file(job_id, "status.json")["status"] == "finished", LONG)
    written = contract.file(job_id, "status.json")
    assert (written["worker_id"], written["exit_code"]) == ("w1", 0)
    assert written["status_updated_at"] > 0

    eventually(lambda: contract.registered(job_id) == "finished", LONG)


def test_a_job_fails_with_its_exit_code(contract: Contract) -> None:
    job_id = contract.submit(*python("import sys; print('oh'); sys.exit(3)"))
    with contract.worker("w2", KEY):
        failed = contract.reaches(job_id, "failed")
    assert (failed["exit_code"], failed["error"]) == (3, "the container failed")
    assert contract.http.get(f"/file-logs/{job_id}").text == "oh\n"


def test_a_job_that_runs_is_stopped_by_its_worker(contract: Contract) -> None:
    job_id = contract.submit(*python("import time; time.sleep(3600)"))
    with contract.worker("w3"):
        contract.reaches(job_id, "running")
        answer = contract.http.post(f"/stop/{job_id}")
        assert answer.json()["status"] == "stop_requested"
        assert contract.reaches(job_id, "stopped")["exit_code"] == -signal.SIGTERM


def test_two_workers_share_the_jobs_and_none_runs_twice(contract: Contract) -> None:
    jobs = [contract.submit(*python(STEPS, "/data", "{job_id}")) for _ in range(6)]
    with contract.worker("w4"), contract.worker("w5"):
        ended = [contract.reaches(job_id, "finished") for job_id in jobs]
    assert {job["worker_id"] for job in ended} <= {"w4", "w5"}
    for job_id in jobs:
        assert contract.http.get(f"/file-logs/{job_id}").text == f"simulated {job_id}\n"


def test_a_required_host_gets_its_job_and_others_get_204(contract: Contract) -> None:
    job_id = contract.submit(target_host="only", require_host=True)
    assert contract.next_job("another") is None
    contract.take("only", job_id)
    assert contract.say("only", job_id, "finished", exit_code=0).status_code == 200


# --- request by request ---------------------------------------------------------------------------


def test_a_job_is_cancelled_before_it_starts(contract: Contract) -> None:
    job_id = contract.submit()
    answer = contract.http.post(f"/stop/{job_id}")
    assert (answer.status_code, answer.json()["status"]) == (200, "canceled")
    assert contract.next_job("w6") is None
    refused = contract.say("w6", job_id, "running")
    assert refused.status_code == 409
    assert refused.json()["detail"]


def test_statuses_may_be_repeated_and_wrong_ones_are_409(contract: Contract) -> None:
    job_id = contract.submit()
    contract.take("w7", job_id)
    assert contract.status(job_id)["status"] == "dispatched"
    assert contract.say("w7", job_id, "stopped").status_code == 409
    for _ in range(2):
        assert contract.say("w7", job_id, "running", container_id="c7").status_code == 200
    for status in ("queued", "launching", "canceled", "unknown", "not_found"):
        assert contract.say("w7", job_id, status).status_code == 409, status
    assert contract.say("w8", job_id, "running").status_code == 409
    for _ in range(2):
        assert contract.say("w7", job_id, "finished", exit_code=0).status_code == 200
    for status in ("running", "failed", "stopped"):
        assert contract.say("w7", job_id, status).status_code == 409, status
    ended = contract.status(job_id)
    assert (ended["status"], ended["container_id"]) == ("finished", "c7")


def test_a_job_that_finishes_although_its_stop_was_requested_has_finished(
    contract: Contract,
) -> None:
    job_id = contract.submit()
    contract.take("w9", job_id)
    contract.say("w9", job_id, "running")
    contract.http.post(f"/stop/{job_id}")
    assert contract.say("w9", job_id, "running").status_code == 200
    assert contract.status(job_id)["status"] == "stop_requested"
    assert contract.say("w9", job_id, "finished", exit_code=0).status_code == 200
    assert contract.status(job_id)["status"] == "finished"


def test_an_unknown_job_is_404(contract: Contract) -> None:
    assert contract.http.get("/status/1234-5678").json()["status"] == "not_found"
    for path in ("status", "job-info", "logs", "file-logs", "progress", "result"):
        answer = contract.http.get(f"/{path}/1234-5678")
        assert (answer.status_code, "detail" in answer.json()) == (404, True)
    assert contract.say("w10", "1234-5678", "running").status_code == 404


def test_hosts_show_what_their_heartbeats_said(contract: Contract) -> None:
    body = {"worker_id": "w11", "info": {"load": 0.25, "version": "1"}}
    assert contract.http.post("/api/agent/heartbeat", json=body).status_code == 200
    assert contract.next_job("w11") is None
    host = contract.http.get("/hosts").json()["hosts"]["w11"]
    assert host["info"]["load"] == 0.25


def test_operators_repair_what_hangs(contract: Contract) -> None:
    job_id = contract.submit()
    contract.take("w12", job_id)
    contract.say("w12", job_id, "running")
    requeue = f"/ops/jobs/{job_id}/requeue"
    assert contract.http.post(requeue).status_code == 409
    assert contract.http.post(requeue, json={"force": True}).json()["status"] == "queued"
    assert contract.say("w12", job_id, "running").status_code == 409
    assert contract.http.post(f"/ops/jobs/{job_id}/cancel").json()["status"] == "canceled"
    assert contract.http.delete(f"/job/{job_id}").status_code == 200
    assert contract.http.get(f"/status/{job_id}").status_code == 404
    assert not (contract.shared / "jobs" / job_id).exists()


# --- silence --------------------------------------------------------------------------------------


def test_jobs_of_a_silent_worker_are_queued_again_or_fail(tmp_path: Path) -> None:
    with serving(tmp_path, **SHORT_TTL) as contract:
        running, stopping, dispatched = (contract.submit() for _ in range(3))
        for job_id in (running, stopping):
            contract.take("silent", job_id)
            assert contract.say("silent", job_id, "running", container_id="c").status_code == 200
        assert contract.http.post(f"/stop/{stopping}").status_code == 200
        contract.take("silent", dispatched)
        for job_id in (running, stopping):
            failed = contract.reaches(job_id, "failed")
            assert (failed["worker_id"], failed["container_id"]) == ("silent", "c")
            assert failed["error"]
            assert contract.say("silent", job_id, "finished", exit_code=0).status_code == 409

        def finished_by_another() -> bool:
            contract.next_job("other")
            return contract.say("other", dispatched, "finished").status_code == 200

        eventually(finished_by_another, LONG)
        assert contract.say("silent", dispatched, "running").status_code == 409
        assert contract.status(dispatched)["worker_id"] == "other"


# --- the server goes away -------------------------------------------------------------------------


def test_the_files_and_the_jobs_survive_the_server(own: Start, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    first = own.server_without_worker()
    contract = Contract(first, shared)
    waits, runs = contract.submit(), contract.submit()
    contract.take("w1", waits)
    contract.take("w1", runs)
    contract.say("w1", runs, "running")
    first.kill()
    (shared / "queue" / f"{waits}.json").unlink(missing_ok=True)
    for job_id in (waits, runs):
        for name in ("status.json", "job_info.json"):
            (shared / "jobs" / job_id / name).unlink()
    again = Contract(own.server_without_worker(), shared)
    assert again.say("w1", runs, "finished", exit_code=0).status_code == 200
    eventually((shared / "jobs" / waits / "status.json").exists, LONG)
    eventually(lambda: again.file(runs, "status.json")["status"] == "finished", LONG)
    assert again.file(waits, "status.json")["status"] == "dispatched"
