"""Two hosts that lose each other for longer than every time limit, and find each other again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.container_engine import Engine
from tests.containers.hosts import WAIT_SECONDS, Cluster, cluster
from tests.network_hosts import NEAR_ADDRESS, TwoHosts, two_hosts, why_none
from tests.processes import eventually
from tests.system.server import JOBS

SHORT = {
    "QUEUE_CLAIM_TTL": "2",
    "HOST_HEARTBEAT_TTL": "2",
    "WORKER_STALE_GRACE_SECONDS": "1",
    "JOB_STATUS_TTL": "3",
    "ADE_SWEEP_SECONDS": "0.2",
}


@pytest.fixture
def network() -> Iterator[TwoHosts]:
    if (reason := why_none()) is not None:
        pytest.skip(reason)
    with two_hosts() as hosts:
        yield hosts


def test_no_job_runs_twice_at_once_and_none_is_lost(
    network: TwoHosts, tmp_path: Path, podman: Engine
) -> None:
    def act() -> None:
        with cluster(tmp_path, podman, NEAR_ADDRESS, **SHORT) as hosts:
            part(network, hosts, podman, tmp_path / "marks")

    (tmp_path / "marks").mkdir()
    network.at_near(act)


def given_to(hosts: Cluster, job_id: str) -> list[str]:
    """List the agents that a job was given to."""
    lines = hosts.http.get(f"{JOBS}/{job_id}/events").text.splitlines()
    events = [json.loads(line) for line in lines]
    return [event["data"]["worker"] for event in events if event["event"] == "job.dispatched"]


def part(network: TwoHosts, hosts: Cluster, podman: Engine, marks: Path) -> None:
    """Cut the hosts off from each other while the far one has jobs, and connect them again."""

    def submit(name: str, script: str) -> str:
        volumes = [{"host": str(marks), "container": "/marks", "mode": "rw"}]
        begun = f"echo begun >> /marks/{name}; echo up; {script}"
        return hosts.submit(begun, volumes=volumes, stop_grace_seconds=0)

    hosts.serves()
    options = ["--folder", str(marks), "--heartbeat-seconds", "0.5"]
    far = hosts.agent("far", "--slots", "3", *options, under=network.at_far)
    runs = submit("runs", "exec /bin/busybox sleep 1000")
    ends = submit("ends", "until [ -e /marks/end ]; do /bin/busybox sleep 0.1; done")
    for job in (runs, ends):
        hosts.said(job, b"up\n")

    network.cut_answers()
    waits = submit("waits", "true")  # given to the far host, which waits for work and never hears
    for job in (runs, ends):
        assert hosts.ended(job)["error"]["code"] == "AGENT_LOST"
    (marks / "end").touch()
    far.said("the container has ended")
    near = hosts.agent("near", *options)
    assert hosts.ended(waits)["status"] == "succeeded"
    assert hosts.status(waits)["worker_id"] == "near"
    assert given_to(hosts, waits) == ["far", "near"]
    assert len(podman.running()) == 1  # the far host cannot know that its job was given up
    assert near.stop(WAIT_SECONDS) == 0

    network.heal()
    far.said("the end of an attempt comes too late", WAIT_SECONDS)
    eventually(lambda: podman.all() == [], WAIT_SECONDS)
    assert [hosts.job(job)["status"] for job in (runs, ends)] == ["failed", "failed"]
    again = submit("again", "true")
    assert hosts.ended(again)["status"] == "succeeded"
    assert hosts.status(again)["worker_id"] == "far"
    for name in ("runs", "ends", "waits", "again"):
        assert (marks / name).read_text() == "begun\n"
