"""POST /jobs: what is accepted, what it becomes, what is refused."""

import json
from typing import Any

import pytest
from tests.api.server import JOBS, Server, echo, failed, problem, succeeded

from ade.stages.kernel_settings import KernelSettings
from ade.store.rows import JobRef

CONTRACT = """job_id workspace_id job_type status priority target_id execution_key deduplicated
rerun_of attempt stop_request submitted_by submitted_at started_at finished_at duration_ms waiting
limits resource_usage isolation evaluation counts error progress links"""
JOB_FIELDS = set(CONTRACT.split())


async def test_a_job_is_accepted_and_found_at_its_location(server: Server) -> None:
    answer = await server.http.post(JOBS, json=echo())
    assert answer.status_code == 202
    job = answer.json()
    assert set(job) == JOB_FIELDS
    assert job["status"] == "queued"
    assert job["attempt"] == 0
    assert job["execution_key"].startswith("sha256:")
    assert job["waiting"]["reason"] == "capacity"
    assert job["limits"]["timeout_ms"] == 300_000
    assert job["submitted_at"].endswith("Z")
    assert answer.headers["location"] == f"{JOBS}/{job['job_id']}" == job["links"]["self"]
    found = (await server.http.get(answer.headers["location"])).json()
    assert found["job_id"] == job["job_id"]


async def test_the_workspace_may_be_named_by_its_id(server: Server) -> None:
    job = await server.submit()
    answer = await server.http.post(
        f"/api/v1/workspaces/{job['workspace_id']}/jobs", json=echo(value=2)
    )
    assert answer.status_code == 202
    assert answer.headers["location"].startswith("/api/v1/workspaces/default/")


async def test_trailing_slashes_do_not_matter(server: Server) -> None:
    answer = await server.http.post(JOBS + "//", json=echo())
    assert answer.status_code == 202
    assert (await server.http.get(JOBS + "/")).status_code == 200


async def test_the_whole_envelope_of_the_contract_is_taken(server: Server) -> None:
    sent = echo(
        schema_version="1.0",
        job_id="whatever",
        created_at="2026-01-10T10:00:00Z",
        workspace_id="elsewhere",
        project_id="p",
        document_id="d",
        execution_key="sha256:mine",
        priority="high",
        requested_by={"user_id": "someone"},
        limits={"timeout_ms": 1000, "memory_mb": 64},
        environment={"language": "python", "env_version": "x", "network_access": "disabled"},
        target={"object_id": "o"},
        output_spec={"formats": ["png"]},
    )
    answer = await server.http.post(JOBS, json=sent)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert job["priority"] == "high"
    assert job["limits"] == {
        "timeout_ms": 1000,
        "cpu_ms": 60_000,
        "memory_mb": 64,
        "max_output_kb": 256,
        "max_artifacts": 50,
    }
    envelope = (await server.http.get(job["links"]["self"] + "/payload")).json()
    assert envelope["job_id"] == job["job_id"]
    assert envelope["workspace_id"] == job["workspace_id"]
    assert envelope["execution_key"] == job["execution_key"] != "sha256:mine"
    assert envelope["requested_by"] == {"user_id": job["submitted_by"]}
    assert envelope["limits"] == job["limits"]
    assert envelope["target"] == {"object_id": "o"}
    assert envelope["output_spec"] == {"formats": ["png"]}
    stored = await server.kernel.read(
        lambda r: r.read_payload(JobRef(job["workspace_id"], job["job_id"]))
    )
    assert "whatever" not in (stored or "")


async def test_equal_work_is_done_once(server: Server) -> None:
    first = await server.submit(value={"a": 1, "b": 2})
    joined = await server.http.post(JOBS, json=echo(value={"b": 2, "a": 1}))
    assert joined.status_code == 202
    assert joined.json()["deduplicated"] is True
    assert joined.json()["job_id"] == first["job_id"]
    await server.finish(await server.claim())
    known = await server.http.post(JOBS, json=echo(value={"a": 1, "b": 2}))
    assert known.status_code == 200
    assert known.json()["deduplicated"] is True
    assert known.json()["status"] == "succeeded"


@pytest.mark.parametrize(
    "change",
    [
        {"document_revision_id": "rev-2"},
        {"inputs": {"value": 2}},
        {"target": {"object_id": "o"}},
        {"target": {"object_ids": ["o", "p"]}},
    ],
)
async def test_what_a_result_depends_on_is_in_its_key(
    server: Server, change: dict[str, Any]
) -> None:
    first = await server.submit()
    other = (await server.http.post(JOBS, json={**echo(), **change})).json()
    assert other["execution_key"] != first["execution_key"]
    assert other["deduplicated"] is False


async def test_a_job_may_belong_to_no_revision(server: Server) -> None:
    body = {name: value for name, value in echo().items() if name != "document_revision_id"}
    first = (await server.http.post(JOBS, json=body)).json()
    again = (await server.http.post(JOBS, json=body | {"document_revision_id": None})).json()
    assert again["job_id"] == first["job_id"]
    assert (await server.submit())["execution_key"] != first["execution_key"]


async def test_work_is_done_again_if_that_is_wanted(server: Server) -> None:
    first = await server.submit()
    await server.finish(await server.claim())
    again = (await server.http.post(JOBS, json={**echo(), "dedupe": False})).json()
    assert again["job_id"] != first["job_id"]
    assert again["execution_key"] == first["execution_key"]
    assert again["deduplicated"] is False


async def test_defaults_of_the_inputs_do_not_change_the_key(server: Server) -> None:
    first = await server.submit()
    explicit = {**echo(), "inputs": {"value": 1, "sleep_ms": 0, "steps": 0}}
    assert (await server.http.post(JOBS, json=explicit)).json()["job_id"] == first["job_id"]


async def test_a_failed_duplicate_is_replaced_unless_its_failure_is_wanted(server: Server) -> None:
    first = await server.run(failed())
    reused = await server.http.post(JOBS, json=echo(reuse_failed=True))
    assert reused.status_code == 200
    assert reused.json()["job_id"] == first["job_id"]
    assert reused.json()["error"]["code"] == "PYTHON_EXCEPTION"
    again = await server.http.post(JOBS, json=echo())
    assert again.status_code == 202
    assert again.json()["job_id"] != first["job_id"]


async def test_jobs_on_a_target_or_with_a_time_are_not_deduplicated(server: Server) -> None:
    for more in ({"target_id": "lamp"}, {"not_before": "2999-01-01T00:00:00+01:00"}):
        ids = {(await server.submit(**more))["job_id"] for _ in range(2)}
        assert len(ids) == 2


async def test_a_job_for_later_is_pending_and_says_when(server: Server) -> None:
    job = await server.submit(not_before="2999-01-01T00:00:00+01:00")
    assert job["status"] == "pending"
    assert job["waiting"]["reason"] == "schedule"
    assert "2998-12-31T23:00:00.000Z" in job["waiting"]["detail"]


async def test_more_than_the_quota_is_refused(server: Server) -> None:
    answer = await server.http.post(JOBS, json=echo(limits={"memory_mb": 10**12}))
    found = problem(answer, 422, "limit_exceeds_quota")
    assert found["errors"][0]["field"] == "limits.memory_mb"


@pytest.mark.parametrize("version", ["1", "1.0", "1.7", "1.2.3"])
async def test_every_minor_version_of_the_contract_is_taken(server: Server, version: str) -> None:
    await server.submit(schema_version=version)


@pytest.mark.parametrize("version", ["2.0", "0.9", "one", "1.x", "11"])
async def test_other_major_versions_are_refused(server: Server, version: str) -> None:
    answer = await server.http.post(JOBS, json=echo(schema_version=version))
    problem(answer, 422, "unsupported_schema_version")


async def test_network_is_given_only_where_it_is_allowed(server: Server, serve: Any) -> None:
    asked = echo(environment={"network_access": "enabled"})
    problem(await server.http.post(JOBS, json=asked), 403, "forbidden")
    for rule in ("if_asked", "by_default"):
        open_server = await serve(runtime_network_access=rule)
        assert (await open_server.http.post(JOBS, json=asked)).status_code == 202


async def test_safe_mode_takes_no_jobs(serve: Any) -> None:
    server = await serve(rules=KernelSettings(queue_size=0, safe_mode=True))
    found = problem(await server.http.post(JOBS, json=echo()), 400, "safe_mode")
    assert found["detail"].startswith("ADE_SAFE_MODE is enabled")


async def test_an_unknown_job_type_is_refused_with_those_that_are_known(server: Server) -> None:
    answer = await server.http.post(JOBS, json=echo() | {"job_type": "nope"})
    assert "echo" in problem(answer, 422, "validation_error")["detail"]


async def test_wrong_inputs_are_named_by_their_path(server: Server) -> None:
    answer = await server.http.post(JOBS, json=echo() | {"inputs": {"sleep_ms": -1, "x": 1}})
    found = problem(answer, 422, "validation_error")
    assert {e["field"] for e in found["errors"]} == {"inputs.sleep_ms", "inputs.x"}


async def test_the_short_form_for_runs_knows_its_shape(server: Server) -> None:
    async def post(**body: Any) -> Any:
        return await server.http.post(JOBS, json={"config_version_id": "c", **body})

    problem(await post(document_id="d"), 404, "not_found")
    problem(await post(document_ids=["d"], runtime_network_access=False), 404, "not_found")
    problem(await post(document_ids=["d", "e"]), 422, "validation_error")
    problem(await post(document_id="d", document_ids=["d"]), 422, "validation_error")
    problem(await post(), 422, "validation_error")
    problem(await post(document_id="d", nonsense=1), 422, "validation_error")


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve: Any) -> None:
    server = await serve(payload_max_kb=2)
    answer = await server.http.post(JOBS, json=echo(value="x" * 4096))
    problem(answer, 413, "payload_too_large")

    async def pieces() -> Any:
        yield json.dumps(echo(value="x" * 4096)).encode()

    headers = {"content-type": "application/json"}
    problem(
        await server.http.post(JOBS, content=pieces(), headers=headers), 413, "payload_too_large"
    )


async def test_a_refused_job_leaves_no_row(serve: Any) -> None:
    server = await serve(rules=KernelSettings(queue_size=1))
    await server.submit()
    answer = await server.http.post(JOBS, json=echo(value=2))
    problem(answer, 429, "run_queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert len((await server.http.get(JOBS)).json()["items"]) == 1


async def test_a_finished_job_tells_what_it_took(server: Server) -> None:
    job = await server.run(succeeded(5))
    found = (await server.http.get(job["links"]["self"])).json()
    assert found["status"] == "succeeded"
    assert found["attempt"] == 1
    assert found["waiting"] is None
    assert found["resource_usage"] == {"cpu_ms": 7, "memory_mb_peak": 3}
    assert found["duration_ms"] >= 0
    assert found["finished_at"] >= found["started_at"] >= found["submitted_at"]
