"""The same work asked for many times is done once, whatever is lost on the way."""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.system.cells import cell
from tests.system.server import JOBS, KEY, Server, Start, starting

DUPLICATES = 50
HEADERS = {"Authorization": f"Bearer {KEY}"}
# What it leaves tells how often it ran: chance is not the same twice.
SOURCE = "import os\nopen('artifacts/chance', 'wb').write(os.urandom(16))\nos.urandom(8).hex()"


async def ask_together(servers: list[Server], body: dict[str, Any]) -> list[httpx.Response]:
    """Send the same request many times at once, to all servers."""
    async with httpx.AsyncClient(headers=HEADERS, timeout=90) as client:
        return await asyncio.gather(
            *(
                client.post(
                    servers[number % len(servers)].http.base_url.join(JOBS),
                    json=body,
                    headers={"Prefer": "wait=60"},
                )
                for number in range(DUPLICATES)
            )
        )


def check_once(servers: list[Server], answers: list[httpx.Response]) -> str:
    """See that one job answered for all; return its id."""
    assert {answer.status_code for answer in answers} == {200}
    (job_id,) = {answer.json()["job_id"] for answer in answers}
    assert [answer.json()["deduplicated"] for answer in answers].count(False) == 1
    results = [server.result({"job_id": job_id}) for server in servers]
    assert all(result == results[0] for result in results)
    assert results[0]["status"] == "SUCCEEDED"
    assert servers[0].log({"job_id": job_id}).count("job.started") == 1
    return str(job_id)


async def test_duplicates_run_once_and_get_the_same_result(tmp_path: Path) -> None:
    with starting(tmp_path) as start:
        server = start.server()
        body = cell(SOURCE)
        job_id = check_once([server], await ask_together([server], body))
        assert server.http.get(JOBS).json()["items"][0]["job_id"] == job_id
        server.kill()
        again = start.server()
        answer = again.http.post(JOBS, json=body)
        assert (answer.status_code, answer.json()["job_id"]) == (200, job_id)
        assert answer.json()["deduplicated"]


async def test_duplicates_on_two_servers_run_once(start_on_postgres: Start) -> None:
    servers = [start_on_postgres.server(), start_on_postgres.server()]
    check_once(servers, await ask_together(servers, cell(SOURCE)))


@pytest.fixture(params=["sqlite", "postgresql"])
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Start servers on each database."""
    return request.getfixturevalue(
        "start_on_postgres" if request.param == "postgresql" else "start"
    )


async def test_a_client_that_loses_every_first_reply_makes_one_job(started: Start) -> None:
    server = started.server(ADE_QUEUE_SIZE=0)
    keys = [os.urandom(8).hex() for _ in range(10)]
    url = server.http.base_url.join(JOBS)
    body = cell("1 + 1", priority="low") | {"target_id": "lane"}  # work that is never deduplicated
    for key in keys:
        headers = {**HEADERS, "Idempotency-Key": key}
        with pytest.raises(httpx.ReadTimeout):  # it was sent, and no one reads the answer
            async with httpx.AsyncClient(timeout=httpx.Timeout(10, read=0.000001)) as lost:
                await lost.post(url, json=body, headers=headers)
        async with httpx.AsyncClient(timeout=60) as client:
            answers: list[httpx.Response] = []
            while not answers or answers[-1].status_code == 409:  # the first is still in flight
                answers.append(await client.post(url, json=body, headers=headers))
            second = await client.post(url, json=body, headers=headers)
        assert answers[-1].status_code in (200, 202), answers[-1].text
        assert second.json()["job_id"] == answers[-1].json()["job_id"]
        assert second.headers["Idempotency-Replayed"] == "true"
    listed = server.http.get(JOBS, params={"limit": 100}).json()["items"]
    assert len(listed) == len(keys)
