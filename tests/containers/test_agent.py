"""`ade agent` over a real engine: ends, stops, crashes, and servers that are away."""

import os
import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.agent_logs import stream
from tests.container_engine import Engine
from tests.containers.hosts import WAIT_SECONDS, Cluster, cluster
from tests.processes import eventually
from tests.system.server import JOBS

LINES = "i=0; while [ $i -lt {count} ]; do echo line $i; i=$((i+1)); /bin/busybox sleep 0.05; done"
LONG = "echo up; exec /bin/busybox sleep 1000"


def lines(count: int) -> bytes:
    """Return what LINES writes."""
    return b"".join(b"line %d\n" % number for number in range(count))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, podman: Engine) -> Iterator[Cluster]:
    """Run one server for all tests; those that end it start it again."""
    with cluster(tmp_path_factory.mktemp("served"), podman) as made:
        made.serves()
        yield made


@pytest.fixture
def hosts(served: Cluster) -> Iterator[Cluster]:
    """Use the server, and leave no agent."""
    yield served
    served.end_agents()


def test_containers_end_as_they_do(hosts: Cluster, podman: Engine) -> None:
    agent = hosts.agent("a", "--slots", "3")
    done = hosts.submit("echo $GIVEN; echo and this >&2", env={"GIVEN": "this"})
    failed = hosts.submit("echo no; exit 4")
    outside = hosts.submit("true", volumes=[{"host": "/etc", "container": "/data"}])
    no_gpu = hosts.submit("true", resources={"gpus": 64})
    slow = hosts.submit(LONG, {"timeout_ms": 1000}, stop_grace_seconds=0)
    no_image = hosts.submit("true", image="localhost/ade-nothing:1", pull="never")
    assert hosts.ended(done)["status"] == "succeeded"
    assert hosts.log(done) == b"this\nand this\n"
    assert hosts.ended(failed)["error"]["code"] == "CONTAINER_FAILED"
    assert (hosts.status(failed)["exit_code"], hosts.log(failed)) == (4, b"no\n")
    refused = hosts.ended(outside)["error"]
    assert refused["code"] == "CONTAINER_NOT_STARTED"
    assert "outside of the folders" in refused["message"]
    assert "64 GPUs" in hosts.ended(no_gpu)["error"]["message"]
    assert hosts.ended(no_image)["error"]["code"] == "IMAGE_UNAVAILABLE"
    assert hosts.ended(slow)["status"] == "timed_out"
    assert hosts.status(done)["worker_id"] == "a"
    state = hosts.folder / "state-a"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    eventually(lambda: os.listdir(state / "attempts") == [])
    assert agent.stop(seconds=WAIT_SECONDS) == 0
    assert podman.all() == []


def test_a_stop_request_ends_the_container(hosts: Cluster, podman: Engine) -> None:
    hosts.agent("a", "--slots", "2")
    job = hosts.submit(LONG, stop_grace_seconds=0)
    hosts.said(job, b"up\n")
    hosts.http.post(f"{JOBS}/{job}/cancel")
    assert hosts.ended(job)["status"] == "cancelled"
    assert hosts.status(job)["status"] == "stopped"
    eventually(lambda: podman.all() == [], WAIT_SECONDS)


def test_a_killed_agent_leaves_no_container_after_its_restart(
    hosts: Cluster, podman: Engine
) -> None:
    agent = hosts.agent("a", "--slots", "3")
    runs = hosts.submit(f"{LINES.format(count=20)}; {LONG}", stop_grace_seconds=0)
    ends = hosts.submit(f"{LINES.format(count=30)}; /bin/busybox seq 1 200000")
    hosts.said(runs, b"up\n")
    hosts.said(ends, b"line 1\n")
    agent.signal(signal.SIGKILL)
    agent.ended()
    eventually(lambda: len(podman.running()) == 1, WAIT_SECONDS)  # the other one has ended by then
    podman.podman("run", "-d", "--label", "ade.agent=a", "ade-test", "/bin/sh", "-c", LONG)
    hosts.agent("a")
    assert hosts.ended(ends)["status"] == "succeeded"
    assert hosts.log(ends) == lines(30) + b"".join(b"%d\n" % one for one in range(1, 200_001))
    assert hosts.ended(runs)["error"]["code"] == "AGENT_RESTARTED"
    assert hosts.log(runs) == lines(20) + b"up\n"
    eventually(lambda: podman.all() == [], WAIT_SECONDS)


def test_a_server_that_is_away_costs_no_result_and_no_line(hosts: Cluster, podman: Engine) -> None:
    server = hosts.serves()
    agent = hosts.agent("a", "--slots", "2")
    job = hosts.submit(f"{LINES.format(count=30)}; exit 3")
    hosts.said(job, b"line 1\n")
    server.signal(signal.SIGKILL)
    server.ended()
    eventually(lambda: podman.running() == [], WAIT_SECONDS)
    agent.said("the container has ended")
    hosts.serves()
    assert hosts.ended(job)["error"]["code"] == "CONTAINER_FAILED"
    assert hosts.log(job) == lines(30)


def test_what_could_not_be_delivered_is_delivered_after_a_restart(
    hosts: Cluster, podman: Engine
) -> None:
    server = hosts.serves()
    agent = hosts.agent("a", "--drain-seconds", "60")
    job = hosts.submit(LINES.format(count=30))
    hosts.said(job, b"line 1\n")
    assert server.stop(WAIT_SECONDS) == 0
    agent.signal(signal.SIGTERM)  # it waits for the container, and then gives up on the server
    assert agent.ended(WAIT_SECONDS) == 0
    assert podman.all() == []
    hosts.serves()
    hosts.agent("a")
    assert hosts.ended(job)["status"] == "succeeded"
    assert hosts.log(job) == lines(30)


def test_an_engine_that_is_away_costs_no_line(hosts: Cluster, podman: Engine) -> None:
    agent = hosts.agent("a")
    job = hosts.submit(LINES.format(count=60))
    hosts.said(job, b"line 1\n")
    podman.end_service()  # the container goes on, and the connection of its output is cut
    agent.said("the container engine is away")
    podman.serve()
    assert hosts.ended(job)["status"] == "succeeded"
    assert hosts.log(job) == lines(60)


def test_a_draining_agent_stops_what_takes_too_long(hosts: Cluster, podman: Engine) -> None:
    agent = hosts.agent("a", "--drain-seconds", "0")
    job = hosts.submit(LONG, stop_grace_seconds=0)
    hosts.said(job, b"up\n")
    waits = hosts.submit("true")
    assert agent.stop(WAIT_SECONDS) == 0
    assert hosts.ended(job)["error"]["code"] == "AGENT_RESTARTED"
    assert hosts.job(waits)["status"] == "queued"
    hosts.http.post(f"{JOBS}/{waits}/cancel")
    assert podman.all() == []


def test_output_goes_to_a_shared_folder(tmp_path: Path, podman: Engine) -> None:
    shared = tmp_path / "shared"
    with cluster(tmp_path, podman, ADE_VM_SHARED_DATA=shared) as hosts:
        hosts.serves()
        hosts.agent("a", "--shared-folder", str(shared))
        volumes = [{"host": str(shared), "container": "/data", "mode": "rw"}]
        job = hosts.submit("echo there > /data/datasets/made; echo here", volumes=volumes)
        assert hosts.ended(job)["status"] == "succeeded"
        assert hosts.log(job) == b"here\n"
        assert (shared / "jobs" / job / "logs" / f"{job}.log").read_bytes() == b"here\n"
        assert (shared / "datasets" / "made").read_text() == "there\n"


def test_two_agents_do_not_share_a_state_folder(hosts: Cluster) -> None:
    hosts.agent("a")
    with pytest.raises(AssertionError, match=re.escape("Another agent uses")):
        hosts.agent("a")


def test_streams_of_several_agents_are_complete_by_digest(hosts: Cluster) -> None:
    """`scripts/bench agent_logs` does the same with 20 agents."""
    found = stream(hosts, agents=2, seconds=5, restarts=True)
    assert (found["succeeded"], found["equal_by_digest"]) == (2, 2)


def test_an_agent_enrols_with_a_code_once(hosts: Cluster, tmp_path: Path) -> None:
    made = hosts.http.post("/api/v1/agents", json={"name": "enrolled", "labels": ["big"]}).json()
    key_file = tmp_path / "folder" / "key"
    code = ["--key-file", str(key_file), "--code", made["enrolment_code"]]
    hosts.agent("enrolled", *code).stop(WAIT_SECONDS)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    key = key_file.read_text()
    hosts.agent("enrolled", *code)  # the code is spent; the key is there
    assert key_file.read_text() == key
    job = hosts.submit("echo by a key of its own", labels=["big"])
    assert hosts.ended(job)["status"] == "succeeded"
    assert hosts.log(job) == b"by a key of its own\n"
    with pytest.raises(AssertionError, match="The code is not valid"):
        hosts.agent("other", "--key-file", str(tmp_path / "none"), "--code", code[-1])
