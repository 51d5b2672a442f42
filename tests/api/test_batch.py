"""POST /jobs/batch: many jobs, one transaction, each with its own answer."""

from typing import Any

import pytest
from tests.api.server import JOBS, Server, echo, problem

from ade.stages.kernel_settings import KernelSettings

BATCH = JOBS + "/batch"


async def test_each_job_has_its_own_answer_in_order(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    known = await server.run(value="known")
    answer = await server.http.post(
        BATCH,
        json={
            "jobs": [
                echo(value="new"),
                echo() | {"job_type": "nope"},
                echo(value="known"),
                echo(value="new"),
                {"job_type": "echo"},
                echo(limits={"cpu_ms": 10**15}),
                echo(environment={"network_access": "enabled"}),
                7,
                echo(value="nul\0"),
                echo(value="later", not_before="2999-01-01T00:00:00Z"),
            ]
        },
    )
    assert answer.status_code == 207
    items = answer.json()["items"]
    statuses = [item["status"] for item in items]
    assert statuses == [202, 422, 200, 202, 422, 422, 403, 422, 422, 202]
    assert items[2]["job"]["job_id"] == known["job_id"]
    assert items[3]["job"]["job_id"] == items[0]["job"]["job_id"]
    assert items[3]["job"]["deduplicated"] is True
    assert items[5]["problem"]["code"] == "limit_exceeds_quota"
    assert items[9]["job"]["status"] == "pending"
    assert all(("job" in item) != ("problem" in item) for item in items)


async def test_a_thousand_jobs_are_taken(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    answer = await server.http.post(BATCH, json={"jobs": [echo(value=n) for n in range(1000)]})
    items = answer.json()["items"]
    assert {item["status"] for item in items} == {202}
    ids = [item["job"]["job_id"] for item in items]
    assert len(set(ids)) == 1000
    for n in (0, 500, 999):
        envelope = (await server.http.get(f"{JOBS}/{ids[n]}/payload")).json()
        assert envelope["inputs"] == {"value": n}


@pytest.mark.parametrize(
    "body",
    [
        {"jobs": []},
        {"jobs": [echo()] * 1001},
        {"jobs": {}},
        {"jobs": None},
        {},
        [],
        {"jobs": [echo()], "x": 1},
    ],
    ids=["none", "too many", "object", "null", "empty", "list", "extra"],
)
async def test_a_malformed_batch_is_refused(server: Server, body: Any) -> None:
    problem(await server.http.post(BATCH, json=body), 422, "validation_error")


@pytest.mark.parametrize("body", [b"", b"{", b'{"jobs": [', b'{"jobs": ["\\ud800"]}'])
async def test_a_body_that_is_not_json_is_refused(server: Server, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    problem(await server.http.post(BATCH, content=body, headers=headers), 422, "validation_error")


async def test_what_fits_into_the_queue_is_taken_and_the_rest_refused(serve: Any) -> None:
    server = await serve(rules=KernelSettings(queue_size=3))
    answer = await server.http.post(BATCH, json={"jobs": [echo(value=n) for n in range(5)]})
    statuses = [item["status"] for item in answer.json()["items"]]
    assert statuses == [202, 202, 202, 429, 429]


async def test_what_fits_into_the_quota_is_taken_and_the_rest_refused(serve: Any) -> None:
    server = await serve(rules=KernelSettings(queue_size=0, workspace_queue_size=3))
    answer = await server.http.post(BATCH, json={"jobs": [echo(value=n) for n in range(5)]})
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [202, 202, 202, 429, 429]
    for item in items[3:]:
        assert item["problem"]["code"] == "run_queue_full"
        assert "ADE_WORKSPACE_QUEUE_SIZE" in item["problem"]["detail"]


async def test_one_job_that_is_too_large_does_not_spoil_the_others(serve: Any) -> None:
    server = await serve(payload_max_kb=2)
    jobs = [echo(value="x" * 4096), echo(value=2)]
    items = (await server.http.post(BATCH, json={"jobs": jobs})).json()["items"]
    assert [item["status"] for item in items] == [413, 202]
    whole = {"jobs": [echo(value="x" * 1000)] * 70}
    problem(await server.http.post(BATCH, json=whole), 413, "payload_too_large")


async def test_a_job_reads_the_same_in_a_batch_and_alone(server: Server) -> None:
    jobs = [
        echo(value=1),
        echo(value=2),
        echo(value=3, target_id="\x01 execution_key"),
        echo(value=4, target_id="\x01 execution_key"),
        echo(value=5, priority="high", limits={"memory_mb": 77}),
        echo(value=1),
        echo(value=6, not_before="2999-01-01T00:00:00Z"),
    ]
    items = (await server.http.post(BATCH, json={"jobs": jobs})).json()["items"]
    for item in items:
        made = item["job"]
        found = (await server.http.get(made["links"]["self"])).json()
        for varying in ("deduplicated", "waiting"):
            del made[varying], found[varying]
        assert made == found
