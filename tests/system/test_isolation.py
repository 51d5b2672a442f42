"""What an operator sees and decides: the doctor, the least level, network, and after a kill."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import eventually, is_alive, name_of, tree
from tests.sandbox.modes import BY_NAME, can_run
from tests.system.cells import begin, error, run
from tests.system.server import Server, Start, starting

DOCKER = BY_NAME["docker"]
needs_root = pytest.mark.skipif(
    not can_run(DOCKER), reason="only root can take rights away as Docker does"
)


@pytest.fixture
def start_as_in_docker(tmp_path: Path) -> Iterator[Start]:
    """Start `ade` processes with what Docker's default profile leaves."""
    with starting(tmp_path, DOCKER.command([])) as start:
        yield start


def health(server: Server, part: str) -> dict[str, Any]:
    """Read one part of the health of a server."""
    parts = server.http.get("/api/v1/health").json()["components"]
    return next(dict(found) for found in parts if found["name"] == part)


# --- the doctor -----------------------------------------------------------------------------------


def test_the_doctor_names_each_sandbox_layer(start: Start) -> None:
    doctor = start.command("doctor", "--json")
    assert doctor.ended() == 0
    found = json.loads(doctor.output)
    assert found["level"] in {"full", "landlock"}
    assert (found["least"], found["refused"]) == ("landlock", False)
    layers = {layer["name"]: layer["state"] for layer in found["layers"]}
    assert {"user", "pid", "mount", "net", "ipc", "uts", "landlock", "seccomp"} <= set(layers)
    assert {"user id", "memory", "processor"} <= set(layers)
    assert layers["seccomp"] == "up"
    assert set(layers.values()) <= {"up", "weaker", "missing"}


def test_the_doctor_says_it_to_people(start: Start) -> None:
    doctor = start.command("doctor")
    assert doctor.ended() == 0
    assert "(least accepted: landlock)" in doctor.output
    assert "denied calls are reported by name" in doctor.output


@needs_root
def test_the_doctor_says_why_a_level_is_not_reached(start_as_in_docker: Start) -> None:
    doctor = start_as_in_docker.command("doctor", "--json", ADE_SANDBOX="full")
    assert doctor.ended() == 5
    found = json.loads(doctor.output)
    assert (found["level"], found["least"], found["refused"]) == ("landlock", "full", True)
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert layers["mount"]["state"] == "weaker"
    assert "stat" in layers["mount"]["detail"]
    assert "namespaces" in found["remedy"]


@needs_root
def test_the_doctor_is_content_with_what_is_accepted(start_as_in_docker: Start) -> None:
    doctor = start_as_in_docker.command("doctor")
    assert doctor.ended() == 0
    assert "To strengthen it:" in doctor.output


def test_isolation_none_is_reported(start: Start) -> None:
    doctor = start.command("doctor", ADE_SANDBOX="none")
    assert doctor.ended() == 0
    assert "ADE_SANDBOX=none" in doctor.output
    server = start.server(ADE_SANDBOX="none")
    found = health(server, "isolation")
    assert found["status"] == "degraded"
    assert "ADE_SANDBOX=none" in found["detail"]


# --- the least level ------------------------------------------------------------------------------


@needs_root
def test_below_the_least_level_nothing_runs(start_as_in_docker: Start) -> None:
    server = start_as_in_docker.server(ADE_SANDBOX="full", ADE_RETRY_MAX_ATTEMPTS=1)
    found = error(server, "open('/tmp/ran', 'w')")
    assert (found["category"], found["code"]) == ("INTERNAL_ERROR", "SANDBOX_UNAVAILABLE")
    assert "only level landlock is reached, and ADE_SANDBOX=full requires more" in found["message"]
    assert "namespaces" in found["message"]  # the remedy
    assert "ade doctor" in found["message"]
    part = health(server, "isolation")
    assert part["status"] == "degraded"
    assert "ADE_SANDBOX=full" in part["detail"]
    assert server.http.get("/api/v1/health").json()["status"] == "degraded"
    echoed = server.ended_job(server.submit(value=1))  # ADE's own code needs no sandbox
    assert echoed["status"] == "succeeded"
    assert echoed["isolation"] == []


@needs_root
def test_at_the_least_level_health_says_what_is_weaker(start_as_in_docker: Start) -> None:
    part = health(start_as_in_docker.server(), "isolation")
    assert part["status"] == "ok"
    assert part["detail"].startswith("Jobs run at level landlock; weaker: user, pid, mount, net")


# --- network --------------------------------------------------------------------------------------

GREET = "import socket\nsocket.create_connection(('127.0.0.1', port), 5).recv(5).decode()"


@pytest.fixture
def greeter() -> Iterator[int]:
    """Greet each connection; give the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello")

        thread = threading.Thread(target=greet)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("way", ["here", pytest.param("docker", marks=needs_root)])
def test_network_is_for_those_who_may_and_do_not_decline(
    tmp_path: Path, greeter: int, way: str
) -> None:
    under = DOCKER.command([]) if way == "docker" else []
    with starting(tmp_path, under, ADE_RUNTIME_NETWORK_ACCESS="by_default") as start:
        server = start.server()
        port = {"port": greeter}
        for environment in ({}, {"network_access": "enabled"}):
            found = run(server, GREET, parameters=port, environment=environment)
            assert found["status"] == "SUCCEEDED", found["error"]
            assert found["outputs"]["result_json"] == "hello"
            assert "network_allowed" in found["job"]["isolation"]
            assert "net" not in found["job"]["isolation"]
        declined = run(server, GREET, parameters=port, environment={"network_access": "disabled"})
        assert declined["error"]["category"] == "SANDBOX_VIOLATION"
        assert declined["error"]["details"]["refused"] == ["socket AF_INET"]
        assert "network_allowed" not in declined["job"]["isolation"]
        local = error(server, "import socket\nsocket.socket(socket.AF_UNIX)")
        assert local["details"]["refused"] == ["socket AF_UNIX"]


# --- the processor --------------------------------------------------------------------------------


def test_jobs_stand_back_as_far_as_the_operator_says(start: Start) -> None:
    server = start.server(ADE_WORKER_NICE=7)
    found = run(server, "import os\nos.getpriority(os.PRIO_PROCESS, 0)")
    assert found["outputs"]["result_json"] == 7


def test_the_doctor_says_when_jobs_do_not_stand_back(start: Start) -> None:
    doctor = start.command("doctor", "--json", ADE_WORKER_NICE=0)
    assert doctor.ended() == 0
    [layer] = [
        layer for layer in json.loads(doctor.output)["layers"] if layer["name"] == "processor"
    ]
    assert (layer["state"], "ADE_WORKER_NICE" in layer["detail"]) == ("weaker", True)


# --- what a kill leaves ---------------------------------------------------------------------------


def kill_when_seen(server: Server, wanted: set[str]) -> None:
    """Kill the server once such processes are below it, and see all of them go."""
    eventually(lambda: wanted <= set(map(name_of, tree(server.pid))))
    below = tree(server.pid)
    assert wanted <= set(map(name_of, below))
    server.kill()
    eventually(lambda: not any(map(is_alive, below)))


def test_a_killed_server_leaves_no_process(start: Start) -> None:
    server = start.server()
    if "pid" not in run(server, "1")["job"]["isolation"]:
        pytest.skip("a cell may start no process at this level")
    source = "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\ntime.sleep(600)"
    begin(server, source)
    kill_when_seen(server, {"ade-zygote", "ade-ready", "ade-job", "sleep"})


@needs_root
def test_a_killed_server_leaves_no_process_without_namespaces(start_as_in_docker: Start) -> None:
    server = start_as_in_docker.server()
    begin(server, "import time\ntime.sleep(600)")
    kill_when_seen(server, {"ade-zygote", "ade-job"})
