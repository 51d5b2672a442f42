"""Two hosts lose each other for longer than every time limit, and find each other again.

The workers know the text of the worker contract alone, and trust a job only as long as the server
says. Their intervals are told by the clock of the machine that they share.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.network_hosts import NEAR_ADDRESS, TwoHosts, two_hosts, why_none
from tests.processes import eventually
from tests.system.server import JOBS, KEY, Server, environment

PROGRAM = Path(__file__).parent / "trusting_worker.py"
WAIT_SECONDS = 180.0
LIMITS = {
    "QUEUE_CLAIM_TTL": 2,
    "HOST_HEARTBEAT_TTL": 6,
    "WORKER_STALE_GRACE_SECONDS": 1,
    "JOB_STATUS_TTL": 7,  # a second more than a worker trusts
    "ADE_SWEEP_SECONDS": 0.2,
    "ADE_SANDBOX": "none",
}


class PlainWorker:
    """Run the program, and remember what it said."""

    def __init__(self, url: str, name: str, folder: Path, under: list[str]) -> None:
        command = [*under, sys.executable, str(PROGRAM), url, name, KEY, str(folder)]
        self._popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.said("ready")

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self._lines.append(line)

    def events(self, event: str) -> list[dict[str, Any]]:
        """List the events of one sort."""
        return [one for one in map(json.loads, self._lines) if one["event"] == event]

    def said(self, event: str, *job_ids: str) -> None:
        """Wait until it has said something of each of these jobs."""

        def told() -> bool:
            found = self.events(event)
            return bool(found) and set(job_ids) <= {one["job_id"] for one in found}

        eventually(told, WAIT_SECONDS)

    def bury(self) -> None:
        """Leave nothing behind."""
        self._popen.kill()
        self._popen.wait()
        self._reader.join(10)
        assert self._popen.stdout is not None
        self._popen.stdout.close()


class Scene:
    """Hold the server, the folder of the workers, and what started."""

    def __init__(self, network: TwoHosts, folder: Path) -> None:
        self.network = network
        self.folder = folder
        env = environment(folder / "data", ADE_HOST=NEAR_ADDRESS, ADE_QUEUE_SIZE=0, **LIMITS)
        self.server = Server(env, folder)
        self._workers: list[PlainWorker] = []

    def worker(self, name: str, under: list[str]) -> PlainWorker:
        """Start a worker."""
        self._workers.append(PlainWorker(self.server.url, name, self.folder, under))
        return self._workers[-1]

    def submit(self) -> str:
        """Submit a job that must be accepted."""
        body = {"job_type": "container", "inputs": {"image": "example:1"}}
        answer = self.server.http.post(JOBS, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def status(self, job_id: str) -> dict[str, Any]:
        """Read the status of a job."""
        return dict(self.server.http.get(f"/status/{job_id}").json())

    def becomes(self, job_id: str, *statuses: str) -> None:
        """Wait until a job has one of these statuses."""
        eventually(lambda: self.status(job_id)["status"] in statuses, WAIT_SECONDS)

    def bury(self) -> None:
        """Leave nothing behind."""
        for worker in self._workers:
            worker.bury()
        self.server.bury()


@pytest.fixture
def network() -> Iterator[TwoHosts]:
    if (reason := why_none()) is not None:
        pytest.skip(reason)
    with two_hosts() as hosts:
        yield hosts


def test_no_job_runs_twice_at_once_and_none_is_lost(network: TwoHosts, tmp_path: Path) -> None:
    def act() -> None:
        scene = Scene(network, tmp_path)
        try:
            part(scene)
        finally:
            scene.bury()

    network.at_near(act)


def part(scene: Scene) -> None:
    """Cut the hosts off from each other while the far one has jobs, and connect them again."""
    far = scene.worker("far", scene.network.at_far)
    held = [scene.submit() for _ in range(3)]
    far.said("begun", *held)
    scene.network.cut_answers()
    unheard = scene.submit()  # the far worker waits for work, and does not hear that it has some

    for job_id in held:
        scene.becomes(job_id, "failed")
        assert scene.status(job_id)["worker_id"] == "far"
    scene.becomes(unheard, "queued")
    far.said("ended", *held)
    near = scene.worker("near", [])
    for job_id in held:
        answer = scene.server.http.post(f"/ops/jobs/{job_id}/requeue", json={})
        assert answer.status_code == 200, answer.text
    near.said("begun", *held, unheard)

    scene.network.heal()
    far.said("given", unheard)  # the old answer arrives at last
    far.said("refused", *held, unheard)
    assert {one["answer"] for one in far.events("refused")} == {409}
    (scene.folder / "end").touch()
    for job_id in (*held, unheard):
        scene.becomes(job_id, "finished")
        assert scene.status(job_id)["worker_id"] == "near"
    assert not [one for one in far.events("begun") if one["job_id"] == unheard]
    for job_id in held:
        (over,) = [one for one in far.events("ended") if one["job_id"] == job_id]
        (begun,) = [one for one in near.events("begun") if one["job_id"] == job_id]
        assert over["at"] <= over["trusted_until"] < begun["at"]
    assert far.events("recorded") == []
