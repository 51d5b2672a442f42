"""Every route that creates work goes through one service: keys, waiting, metrics, draining."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx
import pytest
from tests.api.catalogue import BASE, RUNS, built, claimed, configured, started, uploaded
from tests.api.conftest import Serve
from tests.api.server import JOBS, TARGETS, Server, echo, problem, succeeded
from tests.api.test_health import metrics
from tests.databases import WORKSPACE
from tests.processes import aeventually

from ade.domain.build import KIND
from ade.domain.errors import Unavailable
from ade.domain.events import work_topic
from ade.domain.job import LOCAL_POOL
from ade.stages.kernel_settings import KernelSettings

KEYED = {"Idempotency-Key": "once"}


class Way(NamedTuple):
    """Hold a way to create one job: where to post, what, and what differs from that."""

    path: str
    body: Any
    other_body: Any

    async def post(self, server: Server, body: Any, **headers: str) -> httpx.Response:
        return await server.http.post(self.path, json=body, headers=headers)


async def _document_and_version(server: Server) -> tuple[str, str, str]:
    configuration_id, document_id = await configured(server), await uploaded(server)
    version = await server.catalogue.snapshot(WORKSPACE, configuration_id, "someone")
    return configuration_id, document_id, version.id


async def _ended_run(server: Server) -> str:
    configuration_id, document_id, _ = await _document_and_version(server)
    run = await started(server, configuration_id, document_id)
    await built(server)
    await server.finish(await server.claim())
    return str(run["run_id"])


async def job(server: Server) -> Way:
    return Way(JOBS, echo(1), echo(2))


async def job_on_target(server: Server) -> Way:
    return Way(f"{TARGETS}/lamp/jobs", echo(1), echo(2))


async def short_form(server: Server) -> Way:
    _, document_id, version_id = await _document_and_version(server)
    body = {"config_version_id": version_id, "document_id": document_id}
    return Way(JOBS, body, body | {"runtime_network_access": False})


async def run(server: Server) -> Way:
    configuration_id, document_id, _ = await _document_and_version(server)
    body = {"input_document_id": document_id}
    return Way(f"{BASE}/configurations/{configuration_id}/runs", body, body | {"priority": "low"})


async def rerun(server: Server) -> Way:
    return Way(f"{RUNS}/{await _ended_run(server)}/rerun", None, {"note": "another"})


async def retry(server: Server) -> Way:
    ended = await server.run()
    return Way(f"{JOBS}/{ended['job_id']}/retry", None, {"note": "another"})


async def retry_of_run(server: Server) -> Way:
    return Way(f"{JOBS}/{await _ended_run(server)}/retry", None, {"note": "another"})


async def activation(server: Server) -> Way:
    configuration_id, _, _ = await _document_and_version(server)
    where = f"{BASE}/configurations/{configuration_id}/versions/1/activate"
    return Way(where, None, {"note": "another"})


WAYS = [job, job_on_target, short_form, run, rerun, retry, retry_of_run]
Find = Callable[[Server], Awaitable[Way]]


async def job_ids(server: Server) -> set[str]:
    """List the jobs that were asked for, without the builds that runs brought along."""
    listed = (await server.http.get(JOBS)).json()["items"]
    return {one["job_id"] for one in listed if one["job_type"] != KIND}


async def build_job_ids(server: Server) -> set[str]:
    listed = (await server.http.get(JOBS, params={"job_type": KIND})).json()["items"]
    return {one["job_id"] for one in listed}


# --- Idempotency-Key ------------------------------------------------------------------------------


@pytest.mark.parametrize("find", WAYS)
async def test_the_same_key_creates_one_job_and_gets_the_same_answer(
    server: Server, find: Find
) -> None:
    way = await find(server)
    before = await job_ids(server)
    first = await way.post(server, way.body, **KEYED)
    assert first.status_code == 202, first.text
    again = await way.post(server, way.body, **KEYED)
    assert again.status_code == 202
    assert again.content == first.content
    assert again.headers["location"] == first.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert len(await job_ids(server) - before) == 1


@pytest.mark.parametrize("find", WAYS)
async def test_the_same_key_with_another_body_is_refused(server: Server, find: Find) -> None:
    way = await find(server)
    await way.post(server, way.body, **KEYED)
    before = await job_ids(server)
    problem(await way.post(server, way.other_body, **KEYED), 422, "idempotency_key_reused")
    assert await job_ids(server) == before


@pytest.mark.parametrize("find", WAYS)
async def test_requests_with_one_key_at_the_same_moment_create_one_job(
    server: Server, find: Find
) -> None:
    way = await find(server)
    before = await job_ids(server)
    answers = await asyncio.gather(*[way.post(server, way.body, **KEYED) for _ in range(10)])
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert len(await job_ids(server) - before) == 1


async def test_an_activation_repeated_with_its_key_creates_one_build_job(server: Server) -> None:
    way = await activation(server)
    first = await way.post(server, way.body, **KEYED)
    await built(server, failure="no such package")
    again = await way.post(server, way.body, **KEYED)
    assert (first.status_code, again.content) == (202, first.content)
    assert again.headers["location"] == first.headers["location"] == first.json()["links"]["self"]
    assert again.headers["idempotency-replayed"] == "true"
    assert len(await build_job_ids(server)) == 1
    problem(await way.post(server, way.other_body, **KEYED), 422, "idempotency_key_reused")
    waiting = asyncio.create_task(way.post(server, way.body, Prefer="wait=30"))
    await built_when_there(server, known=1)
    answer = await waiting
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


@pytest.mark.parametrize("find", [run, activation])
@pytest.mark.parametrize("prefer", [{}, {"Prefer": "wait=1"}])
async def test_a_request_whose_server_died_before_it_answered_is_answered_again(
    server: Server, find: Find, prefer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    way = await find(server)

    async def die(row: Any) -> None:
        raise Unavailable("The server died.")

    with monkeypatch.context() as patch:
        patch.setattr(server.kernel, "record_response", die)
        waiting = asyncio.create_task(way.post(server, way.body, Prefer="wait=30", **KEYED))
        await built_when_there(server)
        if find is run:
            await server.finish(await claimed(server))
        problem(await waiting, 503, "unavailable")
    again = await way.post(server, way.body, **KEYED, **prefer)
    assert again.status_code == 200, again.text
    assert again.headers["location"] == again.json()["links"]["self"]
    assert len(await build_job_ids(server)) == 1


async def test_a_batch_repeated_with_its_key_creates_nothing(server: Server) -> None:
    _, document_id, version_id = await _document_and_version(server)
    short = {"config_version_id": version_id, "document_id": document_id}
    body = {"jobs": [echo(1, target_id="lamp"), short, {"job_type": "unknown"}]}
    first = await server.http.post(JOBS + "/batch", json=body, headers=KEYED)
    assert [item["status"] for item in first.json()["items"]] == [202, 202, 422]
    before = await job_ids(server)
    again = await server.http.post(JOBS + "/batch", json=body, headers=KEYED)
    assert again.json()["items"][:2] == first.json()["items"][:2]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert await job_ids(server) == before
    body["jobs"][1] = short | {"runtime_network_access": False}
    mixed = (await server.http.post(JOBS + "/batch", json=body, headers=KEYED)).json()["items"]
    assert mixed[0] == first.json()["items"][0]
    assert mixed[1]["problem"]["code"] == "idempotency_key_reused"
    assert await job_ids(server) == before


# --- Prefer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("find", [job, run, rerun, retry])
async def test_a_client_that_prefers_to_wait_gets_the_end_and_the_result(
    server: Server, find: Find
) -> None:
    way = await find(server)
    prefer = {"Prefer": "wait=30, return=representation", **KEYED}
    asked = asyncio.create_task(way.post(server, way.body, **prefer))
    if find is run:
        await built_when_there(server)
    await server.finish(await claimed(server), succeeded({"rows": 3}))
    answer = await asked
    assert answer.status_code == 200, answer.text
    assert answer.headers["preference-applied"] == "wait=30, return=representation"
    body = answer.json()
    assert body["status"] == "succeeded"
    assert body["result"]["outputs"]["result_json"] == {"rows": 3}
    if find is run:
        assert body["build"]["status"] == "ready"
    again = await way.post(server, way.body, **prefer)
    assert (again.status_code, again.content) == (200, answer.content)
    assert again.headers["idempotency-replayed"] == "true"


async def built_when_there(server: Server, known: int = 0) -> None:
    """Make the build of a run as soon as the run waits for it."""
    with server.kernel.notifier.subscribe(work_topic(LOCAL_POOL)) as work:
        while len(await build_job_ids(server)) <= known:
            await work.wait(1)
    await built(server)


# --- metrics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("find", WAYS)
async def test_every_way_is_counted_by_what_became_of_it(serve: Serve, find: Find) -> None:
    server = await serve(rules=KernelSettings(queue_size=1))
    way = await find(server)
    start = await metrics(server)
    await way.post(server, way.body, **KEYED)
    await way.post(server, way.body, **KEYED)
    await way.post(server, way.other_body, **KEYED)
    problem(await way.post(server, way.other_body), 429, "run_queue_full")
    end = await metrics(server)
    counted = {
        outcome: end.get(("ade_jobs_submitted_total", outcome), 0)
        - start.get(("ade_jobs_submitted_total", outcome), 0)
        for outcome in ("accepted", "replayed", "idempotency_key_reused", "run_queue_full")
    }
    assert set(counted.values()) == {1.0}, counted


async def test_a_run_that_cannot_be_prepared_is_counted_by_its_code(server: Server) -> None:
    way = await run(server)
    start = await metrics(server)
    problem(await way.post(server, {"input_document_id": "unknown"}), 404, "not_found")
    problem(await way.post(server, {}), 422, "validation_error")
    end = await metrics(server)
    for code in ("not_found", "validation_error"):
        name = ("ade_jobs_submitted_total", code)
        assert end[name] - start.get(name, 0) == 1


# --- runs among other jobs ------------------------------------------------------------------------


async def test_runs_are_accepted_and_refused_in_a_batch_like_jobs(serve: Serve) -> None:
    server = await serve(rules=KernelSettings(queue_size=4))
    _, document_id, version_id = await _document_and_version(server)
    short = {"config_version_id": version_id, "document_id": document_id}
    jobs = [
        echo(1),
        short,
        {"config_version_id": version_id, "document_id": "unknown"},
        {"config_version_id": version_id},
        short | {"runtime_network_access": True},
        {"config_version_id": version_id, "document_ids": [document_id]},
        echo(2),
        short,
        {"config_version_id": version_id, "document_id": "nul\0"},
    ]
    answer = await server.http.post(JOBS + "/batch", json={"jobs": jobs})
    items = answer.json()["items"]
    statuses = [item["status"] for item in items]
    assert statuses == [202, 202, 404, 422, 403, 202, 202, 429, 422]
    assert [items[n]["job"]["job_type"] for n in (0, 1, 5, 6)] == [
        "echo",
        "normalize",
        "normalize",
        "echo",
    ]
    ids = [item["job"]["job_id"] for item in items if "job" in item]
    assert ids == sorted(ids)  # one transaction, in order
    assert await job_ids(server) == set(ids)
    shown = (await server.http.get(f"{RUNS}/{ids[1]}")).json()
    assert shown["input_document_id"] == document_id


async def test_a_batch_of_runs_only(server: Server) -> None:
    _, document_id, version_id = await _document_and_version(server)
    short = {"config_version_id": version_id, "document_id": document_id}
    answer = await server.http.post(JOBS + "/batch", json={"jobs": [short] * 5})
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [202] * 5
    assert len({item["job"]["job_id"] for item in items}) == 5


async def test_a_run_cannot_be_put_on_a_target(server: Server) -> None:
    way = await short_form(server)
    answer = await server.http.post(f"{TARGETS}/lamp/jobs", json=way.body)
    assert "target" in problem(answer, 422, "validation_error")["detail"]
    assert await job_ids(server) == set()


# --- draining -------------------------------------------------------------------------------------


@pytest.mark.parametrize("find", WAYS)
async def test_requests_that_wait_are_answered_when_the_server_drains(
    server: Server, find: Find
) -> None:
    way = await find(server)
    before = await job_ids(server)
    prefer = {"Prefer": "wait=60", **KEYED}
    asked = asyncio.create_task(way.post(server, way.body, **prefer))

    async def new_jobs() -> set[str]:
        return await job_ids(server) - before

    await aeventually(new_jobs)
    server.app.drain()
    async with asyncio.timeout(10):
        answer = await asked
    assert answer.status_code == 202
    assert "preference-applied" not in answer.headers
    (new,) = await new_jobs()
    assert answer.headers["location"].endswith(new)
    again = await way.post(server, way.body, **prefer)
    assert (again.status_code, again.content) == (202, answer.content)
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_server_that_drains_answers_waiting_requests_at_once(server: Server) -> None:
    server.app.drain()
    async with asyncio.timeout(10):
        answer = await server.http.post(JOBS, json=echo(), headers={"Prefer": "wait=60"})
    assert answer.status_code == 202
