"""Prefer: wait=n: the answer when the job has ended, if that is soon."""

import asyncio
from typing import Any

import pytest
from tests.api.server import JOBS, TARGETS, Server, echo, failed
from tests.api.test_idempotency import claim_when_there


@pytest.mark.parametrize("path", [JOBS, TARGETS + "/t/jobs"])
async def test_a_job_that_ends_in_time_is_answered_with_its_end(
    database_url: str, serve: Any, path: str
) -> None:
    server = await serve(database_url)
    headers = {"Prefer": "respond-async, wait=30"}
    asked = asyncio.create_task(server.http.post(path, json=echo(), headers=headers))
    await server.finish(await claim_when_there(server))
    answer = await asked
    assert answer.status_code == 200
    assert answer.headers["preference-applied"] == "wait=30"
    assert answer.json()["status"] == "succeeded"
    assert answer.headers["location"].endswith(answer.json()["job_id"])


async def test_a_failure_is_an_end_too(server: Server) -> None:
    asked = asyncio.create_task(server.http.post(JOBS, json=echo(), headers={"Prefer": "wait=30"}))
    await server.finish(await claim_when_there(server), failed())
    assert (await asked).json()["status"] == "failed"


async def test_a_job_that_takes_longer_is_accepted(server: Server) -> None:
    answer = await server.http.post(JOBS, json=echo(), headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    assert "preference-applied" not in answer.headers
    assert answer.json()["status"] == "queued"


@pytest.mark.parametrize("preference", ["wait=0", "wait=x", "wait", "return=minimal", "xwait=9"])
async def test_a_preference_that_is_not_to_wait_is_ignored(server: Server, preference: str) -> None:
    answer = await server.http.post(JOBS, json=echo(), headers={"Prefer": preference})
    assert answer.status_code == 202


async def test_known_work_is_answered_at_once(server: Server) -> None:
    await server.run()
    answer = await server.http.post(JOBS, json=echo(), headers={"Prefer": "wait=60"})
    assert answer.status_code == 200
    assert answer.json()["deduplicated"] is True
