"""Idempotency-Key over HTTP: the same request gives the same answer."""

import asyncio
from collections import Counter
from typing import Any

from tests.api.server import JOBS, TARGETS, Server, echo, problem

from ade.stages.kernel_settings import KernelSettings

KEYED = {"Idempotency-Key": "once"}


async def test_a_repetition_gets_the_same_answer(server: Server) -> None:
    first = await server.http.post(JOBS, json=echo(), headers=KEYED)
    await server.finish(await server.claim())
    again = await server.http.post(JOBS, json=echo(), headers=KEYED)
    assert again.status_code == first.status_code == 202
    assert again.content == first.content
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers


async def test_the_spelling_of_the_body_does_not_matter(server: Server) -> None:
    first = await server.http.post(JOBS, json=echo(), headers=KEYED)
    body = b'{ "inputs": {"value": 1.0}, "document_revision_id": "rev-1", "job_type": "echo" }'
    headers = {**KEYED, "content-type": "application/json"}
    again = await server.http.post(JOBS, content=body, headers=headers)
    assert again.content == first.content


async def test_another_body_with_the_same_key_is_refused(server: Server) -> None:
    await server.http.post(JOBS, json=echo(), headers=KEYED)
    answer = await server.http.post(JOBS, json=echo(value=2), headers=KEYED)
    problem(answer, 422, "idempotency_key_reused")


async def test_another_user_or_endpoint_may_use_the_same_key(server: Server) -> None:
    await server.http.post(JOBS, json=echo(target_id="t"), headers=KEYED)
    lane = await server.http.post(TARGETS + "/t/jobs", json=echo(value=2), headers=KEYED)
    assert lane.status_code == 202
    other_lane = await server.http.post(TARGETS + "/u/jobs", json=echo(value=3), headers=KEYED)
    assert other_lane.status_code == 202
    ws = "/api/v1/workspaces/default"
    member = (await server.http.post(ws + "/members", json={"name": "b", "role": "editor"})).json()
    key = await server.http.post(ws + "/keys", json={"label": "k", "user_id": member["user_id"]})
    other = await server.client(key.json()["key"]).post(JOBS, json=echo(value=4), headers=KEYED)
    assert other.status_code == 202


async def test_a_refusal_is_not_remembered(serve: Any) -> None:
    server = await serve(rules=KernelSettings(queue_size=1))
    await server.submit(value="first")
    problem(await server.http.post(JOBS, json=echo(), headers=KEYED), 429, "run_queue_full")
    await server.claim()
    assert (await server.http.post(JOBS, json=echo(), headers=KEYED)).status_code == 202


async def test_duplicates_at_the_same_moment_make_one_job(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    body = echo(target_id="no dedupe here")
    answers = await asyncio.gather(
        *[server.http.post(JOBS, json=body, headers=KEYED) for _ in range(50)]
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    replayed = Counter(answer.headers.get("idempotency-replayed") for answer in answers)
    assert replayed == {None: 1, "true": 49}
    assert len((await server.http.get(JOBS)).json()["items"]) == 1


async def test_a_request_that_waits_is_in_flight_until_it_is_answered(server: Server) -> None:
    headers = {**KEYED, "Prefer": "wait=30"}
    first = asyncio.create_task(server.http.post(JOBS, json=echo(), headers=headers))
    claim = await claim_when_there(server)
    early = await server.http.post(JOBS, json=echo(), headers=headers)
    problem(early, 409, "idempotency_in_flight")
    await server.finish(claim)
    answer = await first
    assert answer.status_code == 200
    again = await server.http.post(JOBS, json=echo(), headers=headers)
    assert again.status_code == 200
    assert again.content == answer.content
    assert again.headers["idempotency-replayed"] == "true"


async def claim_when_there(server: Server) -> Any:
    """Claim a job as soon as the news of it comes."""
    from ade.domain.events import work_topic
    from ade.domain.job import LOCAL_POOL
    from ade.stages.claim import ClaimRequest

    with server.kernel.notifier.subscribe(work_topic(LOCAL_POOL)) as bell:
        while not (claims := await server.kernel.claim(ClaimRequest("worker-1", 1))):
            assert await bell.wait(10)
    return claims[0]


async def test_retries_and_batches_know_keys_as_well(server: Server) -> None:
    job = await server.run()
    retry = job["links"]["self"] + "/retry"
    first = await server.http.post(retry, headers=KEYED)
    again = await server.http.post(retry, headers=KEYED)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    batch = {"jobs": [echo(value=n, not_before="2999-01-01T00:00:00Z") for n in range(3)]}
    made = (await server.http.post(JOBS + "/batch", json=batch, headers=KEYED)).json()
    same = (await server.http.post(JOBS + "/batch", json=batch, headers=KEYED)).json()
    assert same == made
    batch["jobs"][1] = echo(value="changed")
    mixed = (await server.http.post(JOBS + "/batch", json=batch, headers=KEYED)).json()["items"]
    assert mixed[0] == made["items"][0]
    assert mixed[1]["problem"]["code"] == "idempotency_key_reused"
    long = await server.http.post(
        JOBS + "/batch", json=batch, headers={"Idempotency-Key": "x" * 191}
    )
    problem(long, 422, "validation_error")
