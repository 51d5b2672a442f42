"""A worker that was written from the worker contract alone, through every path of it."""

import asyncio

import pytest
from tests.api.agents import PlainWorker, submit_container
from tests.api.conftest import Serve
from tests.api.server import JOBS, Server

from ade.domain.errors import Unavailable
from ade.domain.job import StopRequest
from ade.stages.agents.hosts import HostNote
from ade.stages.kernel_settings import KernelSettings
from ade.stages.stop import Stop
from ade.store.rows import JobRef


@pytest.fixture
def worker(server: Server) -> PlainWorker:
    return PlainWorker(server.http)


async def stop(server: Server, job_id: str) -> None:
    workspace = await server.directory.find_workspace("default")
    assert workspace is not None
    await server.kernel.stop(Stop(JobRef(workspace.id, job_id), StopRequest.CANCEL, "someone"))


async def test_a_job_is_described_in_the_words_of_the_contract(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server, host="tiago-gpu")
    assert await worker.take() == {
        "job_id": job_id,
        "job_name": "Demo-Run1",
        "config_path": "configs/demo.yaml",
        "preferred_host": "tiago-gpu",
        "image": "example/simulator:1",
        "command": "--config /data/configs/demo.yaml",
        "container_name": f"ade_job_demo_run1_{job_id}",
        "volumes": [{"host": "/srv/shared", "container": "/data", "mode": "rw"}],
        "env": {},
    }


async def test_an_idle_worker_gets_204(worker: PlainWorker) -> None:
    answer = await worker.next_job()
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["ade-no-job"] == "idle"
    assert "content-length" not in answer.headers


async def test_a_job_runs_and_finishes(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    assert (await worker.status(job_id))["status"] == "dispatched"
    container = {"container_id": "c1", "container_name": "opeva_job_demo"}
    running = await worker.say(job_id, "running", **container)
    assert running.status_code == 200
    assert running.json()["status"] == "running"
    assert (await worker.say(job_id, "running")).status_code == 200
    assert (await worker.say(job_id, "finished", exit_code=0)).status_code == 200
    assert (await worker.say(job_id, "finished", exit_code=0)).status_code == 200
    shown = await worker.status(job_id)
    assert shown["status_updated_at"] > 1_700_000_000
    assert shown | {"status_updated_at": 0} == {
        "job_id": job_id,
        "status": "finished",
        "worker_id": "tiago-gpu",
        "stop_requested": False,
        "exit_code": 0,
        "error": None,
        "details": None,
        "status_updated_at": 0,
        **container,
    }


async def test_a_job_fails(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    await worker.say(job_id, "running")
    failed = await worker.say(job_id, "failed", exit_code=3, error={"why": "no"}, details=[1])
    assert failed.status_code == 200
    shown = await worker.status(job_id)
    assert (shown["status"], shown["exit_code"], shown["details"]) == ("failed", 3, [1])


@pytest.mark.parametrize("code", [["TIMED_OUT"], {"a": 1}, 7, None])
async def test_a_code_that_is_no_text_is_kept_and_means_nothing(
    server: Server, worker: PlainWorker, code: object
) -> None:
    job_id = await submit_container(server)
    await worker.take()
    await worker.say(job_id, "running")
    failed = await worker.say(job_id, "failed", exit_code=3, details={"code": code})
    assert (failed.status_code, failed.json()["status"]) == (200, "failed")
    assert failed.json()["details"] == {"code": code}


async def test_details_that_are_too_long_are_cut_with_their_code(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server)
    await worker.take()
    failed = await worker.say(job_id, "failed", details={"code": "X" * 600_000, "more": "y"})
    assert failed.status_code == 200
    assert failed.json()["details"]["code"] == "X" * 100
    assert len(failed.text) < 20_000


async def test_a_job_is_stopped(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    await worker.say(job_id, "running")
    await stop(server, job_id)
    shown = await worker.status(job_id)
    assert (shown["status"], shown["stop_requested"]) == ("stop_requested", True)
    # It goes on until it has ended, and a stop request is not lost by that.
    assert (await worker.say(job_id, "running")).json()["status"] == "stop_requested"
    assert (await worker.say(job_id, "stopped", exit_code=143)).status_code == 200
    assert (await worker.status(job_id))["status"] == "stopped"


async def test_a_job_that_finishes_although_it_was_to_stop_is_finished(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server)
    await worker.take()
    await worker.say(job_id, "running")
    await stop(server, job_id)
    assert (await worker.say(job_id, "finished", exit_code=0)).status_code == 200
    assert (await worker.status(job_id))["status"] == "finished"


async def test_a_job_that_was_cancelled_before_its_start_is_not_handed_out(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server)
    await stop(server, job_id)
    assert (await worker.next_job()).status_code == 204
    assert (await worker.status(job_id))["status"] == "canceled"


async def test_what_may_not_follow_is_refused(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    await worker.say(job_id, "running")
    for status in ("queued", "launching", "stopped", "unknown", "not_found"):
        refused = await worker.say(job_id, status)
        assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
        assert isinstance(refused.json()["detail"], str)
        assert (await worker.status(job_id))["status"] == "running"


async def test_an_end_is_final(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    await worker.say(job_id, "finished", exit_code=0)
    assert (await worker.say(job_id, "failed", exit_code=1)).status_code == 409
    assert (await worker.say(job_id, "running")).status_code == 409
    shown = await worker.status(job_id)
    assert (shown["status"], shown["exit_code"]) == ("finished", 0)


async def test_only_the_holder_may_report(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    other = PlainWorker(server.http, "other")
    assert (await other.say(job_id, "running")).status_code == 409  # nobody holds it yet
    await worker.take()
    refused = await other.say(job_id, "running")
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    assert (await worker.status(job_id))["status"] == "dispatched"


async def test_a_report_without_a_name_is_of_the_holder(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server)
    await worker.take()
    said = {"job_id": job_id, "status": "running"}
    answer = await server.http.post("/api/agent/job-status", json=said)
    assert (answer.status_code, answer.json()["worker_id"]) == (200, "tiago-gpu")


async def test_a_job_that_is_not_there_cannot_be_reported(worker: PlainWorker) -> None:
    for job_id in ("1234-5678", "01900000-0000-7000-8000-000000000000"):
        answer = await worker.say(job_id, "running")
        assert (answer.status_code, answer.json()["detail"]) == (404, "There is no such job.")


async def test_a_status_that_nobody_knows_is_not_valid(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    assert (await worker.say(job_id, "exploded")).status_code == 422


async def test_each_job_is_handed_out_once(server: Server) -> None:
    jobs = {await submit_container(server) for _ in range(3)}
    workers = [PlainWorker(server.http, f"w{number}") for number in range(6)]
    answers = await asyncio.gather(*(worker.next_job() for worker in workers))
    taken = [answer.json()["job_id"] for answer in answers if answer.status_code == 200]
    assert sorted(taken) == sorted(jobs)
    assert [answer.status_code for answer in answers].count(204) == 3


async def test_a_required_host_is_waited_for(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server, host="far", require_host=True)
    assert (await worker.next_job()).status_code == 204
    assert (await PlainWorker(server.http, "far").take())["job_id"] == job_id


async def test_a_preferred_host_goes_first_while_it_asks(
    server: Server, worker: PlainWorker
) -> None:
    near = PlainWorker(server.http, "near")
    await near.next_job()
    job_id = await submit_container(server, host="near")
    assert (await worker.next_job()).status_code == 204
    assert (await near.take())["job_id"] == job_id


async def test_a_preferred_host_that_does_not_ask_is_not_waited_for(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server, host="away")
    assert (await worker.take())["job_id"] == job_id


async def test_labels_must_be_there(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server, labels=("gpu",))
    assert (await worker.next_job()).status_code == 204
    assert (await worker.take(labels=["gpu", "big"]))["job_id"] == job_id


async def test_an_attempt_with_a_token_is_named_in_each_report(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server)
    job = await worker.take(capabilities=["attempt_fencing_v1"])
    assert job["attempt_number"] == 1
    proof = {"attempt_number": 1, "attempt_token": job["attempt_token"]}
    for wrong in (
        {},
        {"attempt_number": 1},
        proof | {"attempt_number": 2},
        proof | {"attempt_token": "guessed"},
    ):
        refused = await worker.say(job_id, "running", **wrong)
        assert refused.status_code == 409
        assert refused.json()["detail"]["code"] == "stale_job_attempt"
    assert (await worker.say(job_id, "running", **proof)).status_code == 200


async def test_all_that_a_container_may_use_is_told_to_those_who_can_read_it(
    server: Server, worker: PlainWorker
) -> None:
    await submit_container(server, command=["a b", "c"], resources={"cpus": 2})
    job = await worker.take(capabilities=["container_spec_v1"])
    assert job["command"] == "'a b' c"
    assert job["container"]["command"] == ["a b", "c"]
    assert (job["container"]["resources"]["cpus"], job["limits"]["timeout_ms"]) == (2.0, 600_000)


async def test_safe_mode_and_a_database_that_is_away_are_no_errors(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(safe_mode=True))
    answer = await PlainWorker(server.http).next_job()
    assert (answer.status_code, answer.headers["ade-no-job"]) == (204, "safe_mode")


async def test_a_database_that_is_away_is_no_error(
    server: Server, worker: PlainWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.next_job()
    await submit_container(server)

    async def away(look: object) -> None:
        raise Unavailable("The database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(server.kernel, "read", away)
        answer = await worker.next_job()
    assert (answer.status_code, answer.headers["ade-no-job"]) == (204, "unavailable")


async def test_heartbeats_show_in_the_list_of_hosts(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()
    beat = b'{"worker_id": "tiago-gpu", "info": {"load": 0.5, "gpu": NaN}}'
    json_type = {"content-type": "application/json"}
    answer = await server.http.post("/api/agent/heartbeat", content=beat, headers=json_type)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    await worker.say(job_id, "running")
    listed = (await server.http.get("/hosts")).json()
    host = listed["hosts"]["tiago-gpu"]
    assert (host["status"], host["info"]) == ("online", {"load": 0.5, "gpu": None})
    assert host["running_jobs"] == [job_id]
    assert host["last_seen"] >= host["last_heartbeat"] > 1_700_000_000


async def test_a_long_poll_is_answered_when_work_comes(server: Server, worker: PlainWorker) -> None:
    asking = asyncio.create_task(worker.take(wait=25))
    await PlainWorker(server.http, "other").next_job()
    job_id = await submit_container(server)
    async with asyncio.timeout(20):
        assert (await asking)["job_id"] == job_id


async def test_a_poll_that_prefers_to_wait_is_told_how_long(
    server: Server, worker: PlainWorker
) -> None:
    await submit_container(server)
    worker.http.headers["prefer"] = "wait=3600"
    answer = await worker.next_job()
    assert answer.status_code == 200
    assert answer.headers["preference-applied"] == "wait=25"


async def test_a_draining_server_answers_long_polls(server: Server, worker: PlainWorker) -> None:
    asking = asyncio.create_task(worker.next_job(wait=25))
    await asyncio.sleep(0)
    server.app.drain()
    async with asyncio.timeout(20):
        answer = await asking
    assert (answer.status_code, answer.headers["ade-no-job"]) == (204, "draining")
    await submit_container(server)
    assert (await worker.next_job()).status_code == 204


async def test_an_agent_that_drains_keeps_no_work_from_the_others(
    server: Server, worker: PlainWorker
) -> None:
    name = worker.worker_id
    await server.kernel.note_hosts([HostNote(name, 0, None, 0, "{}", frozenset())])
    body = {"worker": name, "reason": "new disk"}
    drained = await server.http.post("/api/v1/ops/drain", json=body)
    assert drained.status_code == 200
    asking = asyncio.create_task(worker.next_job(wait=25))
    other = PlainWorker(server.http, "other")
    job_id = await submit_container(server)
    async with asyncio.timeout(20):
        assert (await other.take(wait=25))["job_id"] == job_id
    second = await submit_container(server)
    resumed = await server.http.post("/api/v1/ops/undrain", json={"worker": name})
    assert resumed.status_code == 204
    async with asyncio.timeout(60):
        assert (await asking).json()["job_id"] == second


async def test_available_hosts_are_those_that_get_work(serve: Serve) -> None:
    server = await serve(available_hosts=("tiago-gpu",))
    job_id = await submit_container(server)
    stranger = PlainWorker(server.http, "stranger")
    refused = await stranger.next_job()
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "AVAILABLE_HOSTS" in refused.json()["detail"]
    await stranger.beat()
    hosts = (await server.http.get("/hosts")).json()
    assert hosts["available_hosts"] == ["tiago-gpu"]
    assert hosts["hosts"]["stranger"]["available"] is False
    assert (await PlainWorker(server.http).take())["job_id"] == job_id


async def test_a_worker_says_who_it_is(server: Server) -> None:
    for body in ({}, {"worker_id": "two words"}, {"worker_id": 7}):
        answer = await server.http.post("/api/agent/next-job", json=body)
        assert (answer.status_code, "worker_id" in answer.json()["detail"]) == (422, True)


async def test_a_long_poll_whose_client_has_left_takes_no_job(server: Server) -> None:
    async with server.on_the_wire() as url:
        asking = asyncio.create_task(PlainWorker(server.http_to(url), "a").next_job(wait=25))
        hosts: dict[str, object] = {}
        while "a" not in hosts:  # until the poll has come
            await asyncio.sleep(0.01)
            hosts = (await server.http.get("/hosts")).json()["hosts"]
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        other = PlainWorker(server.http_to(url), "b")
        job_id = await submit_container(server)
        job = await other.take(wait=25, capabilities=["attempt_fencing_v1"])
        assert (job["job_id"], job["attempt_number"]) == (job_id, 1)
        await other.http.aclose()


async def why(server: Server, job_id: str) -> str:
    waiting = (await server.http.get(f"{JOBS}/{job_id}")).json()["waiting"]
    assert waiting["reason"] == "agent"
    return str(waiting["detail"])


async def test_a_waiting_job_says_what_its_hosts_are_doing(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await submit_container(server, host="tiago-gpu", require_host=True, labels=("gpu",))
    assert "tiago-gpu, which has not been heard of" in await why(server, job_id)
    await worker.beat(slots=1)
    await server.app.state.agent_hosts.write()
    assert "does not have the label gpu" in await why(server, job_id)
    await worker.take(labels=["gpu"])
    await server.app.state.agent_hosts.write()
    second = await submit_container(server, host="tiago-gpu", require_host=True, labels=("gpu",))
    assert "at its capacity: it runs 1 of 1 jobs" in await why(server, second)
    await worker.beat(slots=2, draining=True)
    await server.app.state.agent_hosts.write()
    assert "is drained" in await why(server, second)


async def test_a_heartbeat_that_lists_a_job_keeps_it(server: Server, worker: PlainWorker) -> None:
    job_id = await submit_container(server)
    await worker.take()

    async def until() -> int:
        (held,) = await server.kernel.read(
            lambda reading: [
                reading.read_job(JobRef(*one[:2])) for one in reading.agent_jobs.held()
            ]
        )
        assert held is not None
        return held.lease_expires_at or 0

    for listed in (5, [], ["other"]):  # a count is for people only
        await worker.beat(active_jobs=listed)
    await server.app.state.agent_hosts.write()
    claimed = await until()
    await worker.beat(active_jobs=[{"job_id": job_id.upper()}])
    await server.app.state.agent_hosts.write()
    assert await until() - claimed > 100_000_000  # a status lasts 300 s, a claim 60 s


async def test_a_job_that_cannot_be_described_fails(server: Server, worker: PlainWorker) -> None:
    broken = await submit_container(server, image=7)
    job_id = await submit_container(server)
    assert (await worker.take())["job_id"] == job_id
    shown = await worker.status(broken)
    assert (shown["status"], "image" in shown["error"]) == ("failed", True)
