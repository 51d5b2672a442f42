"""Job control by the worker contract: lists, stop, delete, and the acts of operators."""

from typing import Any

import httpx
import pytest
from tests.api.agents import PlainWorker
from tests.api.server import Server

NOWHERE = "01900000-0000-7000-8000-000000000000"
CONFIG = {"steps": 3}


@pytest.fixture
def worker(server: Server) -> PlainWorker:
    return PlainWorker(server.http, "gpu")


async def submit(server: Server, **body: Any) -> str:
    answer = await server.http.post("/run-simulation", json={"config": CONFIG} | body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["job_id"])


async def running(server: Server, worker: PlainWorker) -> str:
    job_id = await submit(server)
    await worker.take()
    await worker.say(job_id, "running", container_id="c1")
    return job_id


async def ended(server: Server, worker: PlainWorker, status: str = "finished") -> str:
    job_id = await running(server, worker)
    await worker.say(job_id, status, exit_code=0)
    return job_id


async def status(server: Server, job_id: str) -> str:
    return str((await server.http.get(f"/status/{job_id}")).json()["status"])


async def reader(server: Server) -> httpx.AsyncClient:
    """Make the client of somebody who may only read."""
    path = "/api/v1/workspaces/default/keys"
    made = await server.http.post(path, json={"label": "reader", "role": "viewer"})
    return server.client(made.json()["key"])


def refusal(answer: httpx.Response) -> tuple[int, str]:
    assert set(answer.json()) >= {"detail", "code"}
    return answer.status_code, answer.json()["code"]


# --- lists ----------------------------------------------------------------------------------------


async def test_jobs_are_listed_newest_first_in_pages(server: Server, worker: PlainWorker) -> None:
    jobs = [await submit(server, target_host="gpu", job_name=f"n{n}") for n in range(3)]
    await worker.take()
    first = await server.http.get("/jobs?limit=2")
    assert [job["job_id"] for job in first.json()] == [jobs[2], jobs[1]]
    following = first.links["next"]["url"]
    [last] = (await server.http.get(following)).json()
    assert (last["job_id"], last["job_name"]) == (jobs[0], "n0")
    assert (last["status"], last["worker_id"], last["target_host"]) == ("dispatched", "gpu", "gpu")
    assert "link" not in (await server.http.get("/jobs?limit=3")).headers


async def test_a_container_job_of_the_execution_contract_is_listed_too(server: Server) -> None:
    inputs = {"image": "x", "preferred_host": "gpu", "env": {"TOKEN": "hush"}}
    body = {"job_type": "container", "inputs": inputs}
    answer = await server.http.post("/api/v1/workspaces/default/jobs", json=body)
    job_id = answer.json()["job_id"]
    [listed] = (await server.http.get("/jobs")).json()
    assert (listed["job_id"], listed["job_name"]) == (job_id, job_id)
    assert [one["preferred_host"] for one in (await server.http.get("/queue")).json()] == ["gpu"]
    info = await server.http.get(f"/job-info/{job_id}")
    assert (info.json()["job_name"], "hush" in info.text) == (job_id, False)


async def test_the_queue_lists_what_waits_in_its_order(server: Server, worker: PlainWorker) -> None:
    late = await submit(server, priority="low")
    soon = await submit(server)
    assert [entry["job_id"] for entry in (await server.http.get("/queue")).json()] == [soon, late]
    assert (await worker.take())["job_id"] == soon
    assert [entry["job_id"] for entry in (await server.http.get("/queue")).json()] == [late]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "cursor=x", "limt=1"])
async def test_a_wrong_query_is_refused(server: Server, query: str) -> None:
    assert refusal(await server.http.get(f"/jobs?{query}")) == (422, "validation_error")


async def test_the_command_names_the_job(server: Server, worker: PlainWorker) -> None:
    job_id = await submit(server, save_as="demo.yaml")
    payload = await worker.take()
    assert payload["command"] == f"--config /data/configs/demo.yaml --job_id {job_id}"
    assert (payload["config_path"], payload["job_name"]) == ("configs/demo.yaml", "demo")


async def test_a_job_that_is_run_again_keeps_its_name_and_its_host(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit(
        server, save_as="demo.yaml", job_name="mine", target_host="gpu", require_host=True
    )
    await worker.take()
    await worker.say(job_id, "failed", exit_code=1)
    again = await server.http.post(f"/api/v1/workspaces/default/jobs/{job_id}/retry")
    assert again.status_code == 202, again.text
    new_id = again.json()["job_id"]
    assert (await PlainWorker(server.http, "other").next_job()).status_code == 204
    payload = await worker.take()
    assert (payload["job_id"], payload["job_name"]) == (new_id, "mine")
    assert payload["command"] == f"--config /data/configs/demo.yaml --job_id {new_id}"


# --- stop -----------------------------------------------------------------------------------------


async def test_a_job_that_waits_is_cancelled_at_once(server: Server, worker: PlainWorker) -> None:
    job_id = await submit(server)
    answer = await server.http.post(f"/stop/{job_id}", json={"reason": "not needed"})
    assert (answer.status_code, answer.json()["status"]) == (200, "canceled")
    assert (await server.http.post(f"/stop/{job_id}")).status_code == 200
    assert (await worker.next_job()).status_code == 204


async def test_a_job_that_runs_is_asked_to_stop(server: Server, worker: PlainWorker) -> None:
    job_id = await running(server, worker)
    for _ in range(2):
        answer = await server.http.post(f"/stop/{job_id}")
        assert (answer.status_code, answer.json()["status"]) == (200, "stop_requested")
        assert answer.json()["stop_requested"] is True
    assert answer.json()["container_id"] == "c1"
    await worker.say(job_id, "stopped", exit_code=143)
    body = (await server.http.get(f"/status/{job_id}")).json()
    assert (body["status"], body["exit_code"], body["worker_id"]) == ("stopped", 143, "gpu")


async def test_what_has_ended_cannot_be_stopped(server: Server, worker: PlainWorker) -> None:
    job_id = await ended(server, worker)
    assert refusal(await server.http.post(f"/stop/{job_id}")) == (409, "invalid_transition")


# --- delete ---------------------------------------------------------------------------------------


async def test_a_job_that_has_ended_is_deleted_with_its_files(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    assert refusal(await server.http.delete(f"/job/{job_id}")) == (409, "not_finished")
    await worker.say(job_id, "finished", exit_code=0)
    folder = server.app.mirror.folder.root / "jobs" / job_id
    (folder / "results" / "result.json").write_text("{}")
    answer = await server.http.delete(f"/job/{job_id}")
    assert (answer.status_code, answer.json()) == (200, {"job_id": job_id, "deleted": True})
    assert not folder.exists()
    assert refusal(await server.http.delete(f"/job/{job_id}")) == (404, "not_found")
    assert await status(server, job_id) == "not_found"


# --- operators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "becomes"), [("requeue", "queued"), ("fail", "failed"), ("cancel", "canceled")]
)
async def test_an_operator_decides_about_a_dispatched_job(
    server: Server, worker: PlainWorker, action: str, becomes: str
) -> None:
    job_id = await submit(server)
    await worker.take()
    path = f"/ops/jobs/{job_id}/{action}"
    if action == "cancel":
        assert refusal(await server.http.post(path)) == (409, "invalid_transition")
    answer = await server.http.post(path, json={"force": action == "cancel", "reason": "stuck"})
    assert (answer.status_code, answer.json()["status"]) == (200, becomes)
    assert (await server.http.post(path)).status_code == 200
    assert refusal(await worker.say(job_id, "running"))[0] == 409


async def test_only_with_force_a_job_may_run_twice(server: Server, worker: PlainWorker) -> None:
    job_id = await running(server, worker)
    path = f"/ops/jobs/{job_id}/requeue"
    answer = await server.http.post(path)
    assert refusal(answer) == (409, "invalid_transition")
    assert "force=true" in answer.json()["detail"]
    forced = await server.http.post(f"{path}?force=true&reason=gone")
    assert (forced.status_code, forced.json()["status"]) == (200, "queued")
    assert (await PlainWorker(server.http, "other").take())["job_id"] == job_id
    assert refusal(await worker.say(job_id, "finished"))[0] == 409


async def test_a_job_that_an_operator_failed_says_why(server: Server) -> None:
    job_id = await submit(server)
    await server.http.post(f"/ops/jobs/{job_id}/fail", json={"reason": "wrong data"})
    assert "wrong data" in (await server.http.get(f"/status/{job_id}")).json()["error"]


async def test_the_queue_is_cleaned_of_what_does_not_wait(server: Server) -> None:
    job_id = await submit(server)
    queue = server.app.mirror.folder.root / "queue"
    (queue / f"{NOWHERE}.json").write_text("{}")
    (queue / f"{job_id}.json").unlink()
    answer = await server.http.post("/ops/queue/cleanup")
    assert answer.json() == {"removed": 1, "job_ids": [NOWHERE]}
    assert [path.stem for path in queue.iterdir()] == [job_id]


async def test_what_is_for_operators_is_refused_to_others(server: Server) -> None:
    job_id = await submit(server)
    async with await reader(server) as http:
        for action in ("requeue", "fail", "cancel"):
            assert refusal(await http.post(f"/ops/jobs/{job_id}/{action}")) == (403, "forbidden")
        assert refusal(await http.post("/ops/queue/cleanup")) == (403, "forbidden")
        assert refusal(await http.post(f"/stop/{job_id}")) == (403, "forbidden")
        assert refusal(await http.delete(f"/job/{job_id}")) == (403, "forbidden")
    assert await status(server, job_id) == "queued"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/job-info/{}"),
        ("GET", "/logs/{}"),
        ("GET", "/file-logs/{}"),
        ("GET", "/progress/{}"),
        ("GET", "/result/{}"),
        ("POST", "/stop/{}"),
        ("DELETE", "/job/{}"),
        ("POST", "/ops/jobs/{}/requeue"),
        ("POST", "/ops/jobs/{}/fail"),
        ("POST", "/ops/jobs/{}/cancel"),
    ],
)
async def test_an_unknown_job_is_404_everywhere(server: Server, method: str, path: str) -> None:
    for name in (NOWHERE, "1234-5678", "..%2F..%2Fetc"):
        answer = await server.http.request(method, path.format(name))
        assert answer.status_code == 404, answer.text
        assert "detail" in answer.json()


@pytest.mark.parametrize("path", ["/ops/jobs/{}/fail", "/stop/{}"])
async def test_bodies_are_limited_and_checked(server: Server, path: str) -> None:
    job_id = await submit(server)
    path = path.format(job_id)
    assert refusal(await server.http.post(path, json={"forse": True}))[0] == 422
    assert refusal(await server.http.post(path, json={"reason": "x" * 501}))[0] == 422
    assert refusal(await server.http.post(path, json={"reason": "x" * 100_000}))[0] == 413
    assert await status(server, job_id) == "queued"
