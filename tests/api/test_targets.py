"""Targets: one after the other, and what a person decides about a blocked lane."""

from typing import Any

from tests.api.server import TARGETS, Server, echo, failed, problem, succeeded

LAMP = TARGETS + "/lamp"


async def on_lane(server: Server, value: Any) -> dict[str, Any]:
    answer = await server.http.post(LAMP + "/jobs", json=echo(value=value))
    assert answer.status_code == 202, answer.text
    return answer.json()


async def lane(server: Server) -> dict[str, Any]:
    answer = await server.http.get(LAMP)
    assert answer.status_code == 200
    return answer.json()


async def test_an_unused_lane_is_free(server: Server) -> None:
    assert await lane(server) == {
        "target_id": "lamp",
        "queue_status": "running",
        "blocking_jobs": [],
        "running_job": None,
        "queued": 0,
    }


async def test_jobs_of_a_lane_run_one_after_the_other(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    first, second = [await on_lane(server, n) for n in range(2)]
    assert first["target_id"] == "lamp"
    assert (await lane(server))["queued"] == 2
    claim = await server.claim()
    state = await lane(server)
    assert state["running_job"]["job_id"] == first["job_id"]
    assert state["queued"] == 1
    await server.finish(claim)
    assert (await server.claim()).id == second["job_id"]
    listed = (await server.http.get(LAMP + "/jobs")).json()["items"]
    assert [job["job_id"] for job in listed] == [second["job_id"], first["job_id"]]
    running = await server.http.get(LAMP + "/jobs", params={"status": "running"})
    assert [job["job_id"] for job in running.json()["items"]] == [second["job_id"]]


async def test_a_failed_job_blocks_until_it_is_resumed(server: Server) -> None:
    first = await on_lane(server, 1)
    await on_lane(server, 2)
    await server.finish(await server.claim(), failed())
    state = await lane(server)
    assert state["queue_status"] == "paused"
    assert [job["job_id"] for job in state["blocking_jobs"]] == [first["job_id"]]
    resumed = await server.http.post(f"{LAMP}/jobs/{first['job_id']}/resume/")
    assert resumed.json()["status"] == "queued"
    assert (await server.claim()).id == first["job_id"]


async def test_a_blocked_lane_is_resolved_with_a_result(server: Server) -> None:
    first, second = [await on_lane(server, n) for n in range(2)]
    await server.finish(await server.claim(), failed())
    body = {"result": {"by hand": True}, "note": "looked at it"}
    resolved = await server.http.post(f"{LAMP}/jobs/{first['job_id']}/resolve", json=body)
    assert resolved.json()["status"] == "succeeded"
    result = (await server.http.get(first["links"]["result"])).json()
    assert result["resolved"] == {
        "by": resolved.json()["submitted_by"],
        "at": result["finished_at"],
        "note": body.get("note"),
    }
    result = (await server.http.get(first["links"]["result"])).json()
    assert result["outputs"]["result_json"] == {"by hand": True}
    assert "looked at it" in (await server.http.get(first["links"]["events"])).text
    assert (await server.claim()).id == second["job_id"]


async def test_a_blocked_lane_is_cleared_without_a_result(server: Server) -> None:
    first, second = [await on_lane(server, n) for n in range(2)]
    path = f"{LAMP}/jobs/{first['job_id']}/clear"
    problem(await server.http.post(path), 409, "invalid_transition")
    await server.finish(await server.claim(), failed())
    cleared = await server.http.post(path, json={"note": "never mind"})
    assert cleared.json()["status"] == "failed"
    assert (await lane(server))["queue_status"] == "running"
    assert (await server.claim()).id == second["job_id"]


async def test_a_job_of_a_lane_is_interrupted_and_cancelled(server: Server) -> None:
    first = await on_lane(server, 1)
    paused = await server.http.post(f"{LAMP}/jobs/{first['job_id']}/interrupt")
    assert paused.json()["status"] == "paused"
    assert (await lane(server))["queue_status"] == "paused"
    cancelled = await server.http.post(f"{LAMP}/jobs/{first['job_id']}/cancel")
    assert cancelled.json()["status"] == "cancelled"
    assert (await lane(server))["queue_status"] == "running"


async def test_a_job_is_found_on_its_own_lane_only(server: Server) -> None:
    job = await on_lane(server, 1)
    free = await server.submit()
    for job_id in (job["job_id"], free["job_id"]):
        for verb in ("interrupt", "resume", "cancel", "clear"):
            path = f"{TARGETS}/other/jobs/{job_id}/{verb}"
            problem(await server.http.post(path), 404, "not_found")
        resolve = f"{TARGETS}/other/jobs/{job_id}/resolve"
        problem(await server.http.post(resolve, json={"result": 1}), 404, "not_found")


async def test_the_lane_in_the_path_is_the_lane(server: Server) -> None:
    same = await server.http.post(LAMP + "/jobs", json=echo(target_id="lamp"))
    assert same.status_code == 202
    other = await server.http.post(LAMP + "/jobs", json=echo(target_id="other"))
    problem(other, 422, "validation_error")
    problem(await server.http.get(f"{TARGETS}/{'x' * 201}"), 422, "validation_error")
    problem(await server.http.get(f"{TARGETS}/a%00b"), 422, "validation_error")
    problem(await server.http.post(f"{TARGETS}/a%00b/jobs", json=echo()), 422, "validation_error")


async def test_resolving_needs_a_result(server: Server) -> None:
    job = await on_lane(server, 1)
    path = f"{LAMP}/jobs/{job['job_id']}/resolve"
    problem(await server.http.post(path), 422, "validation_error")
    problem(await server.http.post(path, json={"note": "x"}), 422, "validation_error")
    problem(await server.http.post(path, json={"result": 1}), 409, "invalid_transition")
    await server.finish(await server.claim(), succeeded())
    problem(await server.http.post(path, json={"result": 1}), 409, "invalid_transition")
