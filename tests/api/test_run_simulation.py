"""`POST /run-simulation`: what becomes of a configuration, and what is refused."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.api.conftest import Serve
from tests.api.server import Server

from ade.domain.agent_pool import AgentPool
from ade.stages.kernel_settings import KernelSettings

CONFIG = {"metadata": {"experiment_name": "Demo", "run_name": "Run1"}, "steps": 3}


async def run(server: Server, **body: Any) -> dict[str, Any]:
    """Submit a job that must be accepted."""
    answer = await server.http.post("/run-simulation", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def refused(server: Server, status: int, **body: Any) -> str:
    """Submit what must be refused, and return the detail."""
    answer = await server.http.post("/run-simulation", json=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) >= {"detail", "code"}
    return str(answer.json()["detail"])


def shared(tmp_path: Path) -> Path:
    return tmp_path / "shared"


async def info(server: Server, job: dict[str, Any]) -> dict[str, Any]:
    answer = await server.http.get(f"/job-info/{job['job_id']}")
    assert answer.status_code == 200
    return dict(answer.json())


async def inputs(server: Server, job: dict[str, Any]) -> dict[str, Any]:
    path = f"/api/v1/workspaces/default/jobs/{job['job_id']}/payload"
    return dict((await server.http.get(path)).json()["inputs"])


async def test_a_configuration_is_kept_as_yaml_and_becomes_a_job(
    server: Server, tmp_path: Path
) -> None:
    answer = await server.http.post(
        "/run-simulation", json={"config": CONFIG, "target_host": "gpu", "save_as": "a/demo.yaml"}
    )
    job = answer.json()
    assert job == {
        "job_id": job["job_id"], "status": "queued", "host": "gpu", "job_name": "Demo-Run1",
    }  # fmt: skip
    assert answer.headers["location"] == f"/status/{job['job_id']}"
    text = (shared(tmp_path) / "configs" / "a" / "demo.yaml").read_text()
    assert text == "metadata:\n  experiment_name: Demo\n  run_name: Run1\nsteps: 3\n"
    assert await inputs(server, job) == {
        "image": "calof/opeva_simulator:latest",
        "command": "--config /data/configs/a/demo.yaml --job_id {job_id}",
        "volumes": [{"host": str(shared(tmp_path)), "container": "/data", "mode": "rw"}],
        "config_path": "configs/a/demo.yaml",
        "experiment_name": "Demo",
        "run_name": "Run1",
        "preferred_host": "gpu",
        "require_host": False,
    }
    shown = await info(server, job)
    assert (shown["config_path"], shown["target_host"]) == ("configs/a/demo.yaml", "gpu")
    assert (shown["experiment_name"], shown["run_name"]) == ("Demo", "Run1")


async def test_yaml_is_kept_as_it_came(server: Server, tmp_path: Path) -> None:
    text = "# mine\nexperiment: {name: Ü, run_name: 7}\n"
    job = await run(server, config=text)
    assert job["job_name"] == "Ü-7"
    shown = await info(server, job)
    assert shown["config_path"].startswith("configs/7-")
    assert (shared(tmp_path) / shown["config_path"]).read_text() == text


async def test_a_file_below_configs_can_be_named(server: Server, tmp_path: Path) -> None:
    folder = shared(tmp_path) / "configs"
    (folder / "demo.yaml").write_text("steps: 1\n")
    for path in ("demo.yaml", "configs/demo.yaml"):
        job = await run(server, config_path=path)
        assert job["job_name"] == "demo"
        assert (await info(server, job))["config_path"] == "configs/demo.yaml"


async def test_a_host_that_is_required_has_a_pool_of_its_own(server: Server) -> None:
    job = await run(
        server, config=CONFIG, target_host="gpu", require_host=True, labels=["cuda"], job_name="x"
    )
    assert job["job_name"] == "x"
    [entry] = (await server.http.get("/queue")).json()
    assert entry == {"job_id": job["job_id"], "preferred_host": "gpu", "require_host": True}
    pools = await server.kernel.read(lambda reading: reading.agent_jobs.waiting_pools())
    assert pools == [AgentPool("gpu", True, ("cuda",))]


async def test_the_container_may_differ(server: Server) -> None:
    given: dict[str, Any] = {
        "image": "busybox:1",
        "command": ["sh", "-c", "true"],
        "container_name": "mine",
        "volumes": [],
        "env": {"A": "secret"},
        "resources": {"memory_bytes": 2**26},
        "network": "bridge",
    }
    job = await run(server, config=CONFIG, **given)
    found = await inputs(server, job)
    assert {name: found[name] for name in given} == given
    shown = await server.http.get(f"/job-info/{job['job_id']}")
    assert shown.json()["container_name"] == "mine"
    assert "secret" not in shown.text


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (422, {}, "either config or config_path"),
        (422, {"config": {}, "config_path": "a"}, "either config or config_path"),
        (422, {"config": CONFIG, "targethost": "a"}, "targethost"),
        (422, {"config": "- a\n"}, "mapping"),
        (422, {"config": "a: [1"}, "line 2"),
        (422, {"config": "a: " + "[" * 10_000}, "deeper"),
        (422, {"config_path": "a", "save_as": "b"}, "save_as"),
        (422, {"config": CONFIG, "image": "no such/../ image"}, "image"),
        (422, {"config": CONFIG, "require_host": True}, "preferred_host"),
        (400, {"config_path": "../../etc/passwd"}, "configs/"),
        (400, {"config_path": "configs/../../x"}, "configs/"),
        (400, {"config_path": "/etc/passwd"}, "configs/"),
        (400, {"config": CONFIG, "save_as": "../x.yaml"}, "configs/"),
        (422, {"config": CONFIG, "save_as": "{job_id}.yaml"}, "another name"),
        (404, {"config_path": "nothing.yaml"}, "configs/nothing.yaml"),
        (413, {"config": "a: " + "x" * 300_000}, "KiB"),
    ],
)
async def test_what_is_refused_leaves_nothing(
    server: Server, tmp_path: Path, status: int, body: dict[str, Any], said: str
) -> None:
    assert said in await refused(server, status, **body)
    assert list((shared(tmp_path) / "configs").rglob("*")) == []
    assert (await server.http.get("/jobs")).json() == []


@pytest.mark.parametrize("name", ["my file --steps 9.yaml", "it's.yaml", "$(id).yaml"])
async def test_the_name_of_a_configuration_is_one_argument(server: Server, name: str) -> None:
    answer = await server.http.post("/run-simulation", json={"config": CONFIG, "save_as": name})
    job = answer.json()
    command = shlex.split((await inputs(server, job))["command"])
    assert command == ["--config", f"/data/configs/{name}", "--job_id", "{job_id}"]


async def test_a_link_out_of_configs_is_not_followed(server: Server, tmp_path: Path) -> None:
    (shared(tmp_path) / "configs" / "out").symlink_to(tmp_path)
    (tmp_path / "secret.yaml").write_text("a: b")
    await refused(server, 400, config_path="out/secret.yaml")
    await refused(server, 400, config=CONFIG, save_as="out/new.yaml")
    assert not (tmp_path / "new.yaml").exists()


async def test_a_configuration_is_not_replaced_under_the_jobs_that_need_it(
    server: Server, tmp_path: Path
) -> None:
    await run(server, config=CONFIG, save_as="demo.yaml")
    await run(server, config=CONFIG, save_as="demo.yaml")
    assert "exists" in await refused(server, 409, config={"steps": 4}, save_as="demo.yaml")
    assert "steps: 3" in (shared(tmp_path) / "configs" / "demo.yaml").read_text()


async def test_only_hosts_that_are_available_may_be_named(serve: Serve) -> None:
    server = await serve(available_hosts=("a", "b"))
    assert "AVAILABLE_HOSTS" in await refused(server, 422, config=CONFIG, target_host="c")
    body = {"job_type": "container", "inputs": {"image": "x", "preferred_host": "c"}}
    answer = await server.http.post("/api/v1/workspaces/default/jobs", json=body)
    assert answer.status_code == 422
    assert (await run(server, config=CONFIG, target_host="b"))["host"] == "b"


async def test_a_repeated_request_gives_the_same_job(server: Server, tmp_path: Path) -> None:
    key = {"Idempotency-Key": "k1"}
    body = {"config": CONFIG}
    answers = [await server.http.post("/run-simulation", json=body, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert len(list((shared(tmp_path) / "configs").iterdir())) == 1
    other = await server.http.post("/run-simulation", json={"config": {"a": 1}}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len(list((shared(tmp_path) / "configs").iterdir())) == 1


async def test_in_safe_mode_nothing_is_accepted_or_kept(serve: Serve, tmp_path: Path) -> None:
    server = await serve(rules=KernelSettings(safe_mode=True), safe_mode=True)
    assert "ADE_SAFE_MODE" in await refused(server, 400, config=CONFIG)
    assert list((shared(tmp_path) / "configs").iterdir()) == []


async def test_who_may_only_read_may_not_submit(server: Server) -> None:
    made = await server.http.post(
        "/api/v1/workspaces/default/keys", json={"label": "reader", "role": "viewer"}
    )
    assert made.status_code in (200, 201), made.text
    reader = server.client(made.json()["key"])
    answer = await reader.post("/run-simulation", json={"config": CONFIG})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert (await reader.get("/jobs")).status_code == 200


async def test_the_files_of_a_new_job_are_there(server: Server, tmp_path: Path) -> None:
    job = await run(server, config=CONFIG, target_host="gpu")
    folder = shared(tmp_path) / "jobs" / job["job_id"]
    status = json.loads((folder / "status.json").read_text())
    assert (status["status"], status["job_id"]) == ("queued", job["job_id"])
    assert json.loads((folder / "job_info.json").read_text()) == await info(server, job)
    entry = json.loads((shared(tmp_path) / "queue" / f"{job['job_id']}.json").read_text())
    assert entry == {"job_id": job["job_id"], "preferred_host": "gpu", "require_host": False}
