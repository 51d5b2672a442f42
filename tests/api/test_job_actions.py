"""Cancel, interrupt, resume, retry."""

from tests.api.server import JOBS, Server, echo, failed, problem


async def test_a_waiting_job_is_cancelled_at_once(server: Server) -> None:
    job = await server.submit()
    answer = await server.http.post(job["links"]["self"] + "/cancel", json={"reason": "not needed"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "cancelled"
    log = (await server.http.get(job["links"]["events"])).text
    assert "not needed" in log
    again = await server.http.post(job["links"]["self"] + "/cancel")
    assert again.json()["status"] == "cancelled"


async def test_a_running_job_is_asked_to_stop(server: Server) -> None:
    job = await server.submit()
    claim = await server.claim()
    paused = await server.http.post(job["links"]["self"] + "/interrupt")
    assert paused.json()["stop_request"] == "pause"
    assert paused.json()["status"] == "running"
    cancelled = await server.http.post(job["links"]["self"] + "/cancel")
    assert cancelled.json()["stop_request"] == "cancel"
    await server.finish(claim)
    done = (await server.http.get(job["links"]["self"])).json()
    assert done["status"] == "succeeded"
    problem(await server.http.post(job["links"]["self"] + "/cancel"), 409, "invalid_transition")
    problem(await server.http.post(job["links"]["self"] + "/interrupt"), 409, "invalid_transition")


async def test_a_paused_job_is_resumed(server: Server) -> None:
    job = await server.submit()
    paused = await server.http.post(job["links"]["self"] + "/interrupt")
    assert paused.json()["status"] == "paused"
    assert paused.json()["waiting"] is None
    resumed = await server.http.post(job["links"]["self"] + "/resume")
    assert resumed.json()["status"] == "queued"
    problem(await server.http.post(job["links"]["self"] + "/resume"), 409, "invalid_transition")


async def test_an_operator_may_resume_what_failed(server: Server) -> None:
    ws = "/api/v1/workspaces/default"
    key = (await server.http.post(ws + "/keys", json={"label": "k", "role": "admin"})).json()
    job = await server.run(failed())
    path = job["links"]["self"] + "/resume"
    problem(await server.client(key["key"]).post(path), 409, "invalid_transition")
    assert (await server.http.post(path)).json()["status"] == "queued"


async def test_an_ended_job_runs_again_as_a_new_one(server: Server) -> None:
    job = await server.submit(limits={"memory_mb": 99}, priority="low")
    problem(await server.http.post(job["links"]["self"] + "/retry"), 409, "not_finished")
    await server.finish(await server.claim())
    answer = await server.http.post(job["links"]["self"] + "/retry")
    assert answer.status_code == 202
    answered = answer.json()
    assert answered["retry_of"] == job["job_id"]
    assert answered["attempt"] == 2
    assert answered["status"] == "queued"
    again = (await server.http.get(answer.headers["location"])).json()
    assert again["job_id"] == answered["job_id"] != job["job_id"]
    assert again["rerun_of"] == job["job_id"]
    assert again["limits"] == job["limits"]
    assert again["priority"] == "low"
    assert again["execution_key"] == job["execution_key"]
    await server.finish(await server.claim())
    third = (await server.http.post(again["links"]["self"] + "/retry")).json()
    assert third["attempt"] == 3
    known = await server.http.post(JOBS, json=echo(limits={"memory_mb": 99}))
    assert known.json()["deduplicated"] is True


async def test_verbs_refuse_bodies_that_make_no_sense(server: Server) -> None:
    job = await server.submit()
    for body in (b"{", b"[]", b'{"reason": 1}', b'{"x": 1}', b'{"reason": "\\u0000"}'):
        headers = {"content-type": "application/json"}
        answer = await server.http.post(
            job["links"]["self"] + "/cancel", content=body, headers=headers
        )
        problem(answer, 422, "validation_error")
    huge = await server.http.post(job["links"]["self"] + "/cancel", json={"reason": "x" * 70_000})
    problem(huge, 413, "payload_too_large")
