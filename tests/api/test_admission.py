"""A full queue, exactly, under many simultaneous requests over real connections."""

import asyncio
from collections import Counter
from typing import Any

import httpx
from tests.api.server import JOBS, KEY, echo

from ade.stages.kernel_settings import KernelSettings

REQUESTS = 200
PLACES = 10


async def flood(url: str) -> list[httpx.Response]:
    limits = httpx.Limits(max_connections=REQUESTS, max_keepalive_connections=REQUESTS)
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60) as http:
        return await asyncio.gather(*[http.post(JOBS, json=echo(value=n)) for n in range(REQUESTS)])


async def test_exactly_the_free_places_are_given(database_url: str, serve: Any) -> None:
    server = await serve(database_url, rules=KernelSettings(queue_size=PLACES))
    taken = 3
    for n in range(taken):
        await server.submit(value=f"before {n}")
    async with server.on_the_wire() as url:
        answers = await flood(url)
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {202: PLACES - taken, 429: REQUESTS - PLACES + taken}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert all(answer.json()["code"] == "run_queue_full" for answer in refused)
    assert all(1 <= int(answer.headers["retry-after"]) <= 300 for answer in refused)
    listed = (await server.http.get(JOBS, params={"limit": 200})).json()["items"]
    assert len(listed) == PLACES
    accepted = {answer.json()["job_id"] for answer in answers if answer.status_code == 202}
    assert accepted < {job["job_id"] for job in listed}


async def test_a_workspace_gets_exactly_its_quota(database_url: str, serve: Any) -> None:
    server = await serve(
        database_url, rules=KernelSettings(queue_size=0, workspace_queue_size=PLACES)
    )
    await server.http.post("/api/v1/workspaces", json={"slug": "lab", "name": "Lab"})
    for n in range(PLACES):
        answer = await server.http.post("/api/v1/workspaces/lab/jobs", json=echo(value=n))
        assert answer.status_code == 202
    async with server.on_the_wire() as url:
        answers = await flood(url)
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {202: PLACES, 429: REQUESTS - PLACES}
    refused = [answer for answer in answers if answer.status_code == 429]
    for answer in refused:
        body = answer.json()
        assert body["code"] == "run_queue_full"
        assert f"workspace's quota is used up: {PLACES} of its jobs" in body["detail"]
        assert "ADE_WORKSPACE_QUEUE_SIZE" in body["detail"]
        assert 1 <= int(answer.headers["retry-after"]) <= 300
    listed = (await server.http.get(JOBS, params={"limit": 200})).json()["items"]
    accepted = {answer.json()["job_id"] for answer in answers if answer.status_code == 202}
    assert accepted == {job["job_id"] for job in listed}


async def test_two_servers_share_one_queue(postgres_url: str, serve: Any) -> None:
    servers = [await serve(postgres_url, rules=KernelSettings(queue_size=PLACES)) for _ in range(2)]

    async def post(n: int) -> int:
        answer = await servers[n % 2].http.post(JOBS, json=echo(value=n))
        return int(answer.status_code)

    statuses = Counter(await asyncio.gather(*[post(n) for n in range(100)]))
    assert statuses == {202: PLACES, 429: 100 - PLACES}
