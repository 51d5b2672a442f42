"""The access log: a line per request, and no secret in it."""

import json

import pytest
import structlog
from tests.api.conftest import Serve
from tests.api.server import JOBS, KEY, echo


async def test_each_request_has_a_line_without_secrets(serve: Serve) -> None:
    server = await serve(access_log=True, trusted_proxies=("127.0.0.1",))
    with structlog.testing.capture_logs() as lines:
        made = await server.http.post(JOBS, json=echo("a-private-value"))
        forwarded = {"X-Forwarded-For": "198.51.100.7", "Cookie": "ade_session=a-secret"}
        await server.http.get(f"{JOBS}?limit=3", headers=forwarded)
        await server.http.get("/", params={"token": "a-wrong-token"})
    submitted, listed, entered = (line for line in lines if line["event"] == "request")
    assert submitted["route"] == "/api/v1/workspaces/{ws}/jobs"
    assert (submitted["method"], submitted["status"]) == ("POST", 202)
    assert submitted["body_bytes"] == len(made.content)
    assert submitted["trace_id"] == made.headers["x-trace-id"]
    assert submitted["workspace_id"] == made.json()["workspace_id"]
    assert submitted["key_id"]
    assert submitted["duration_ms"] > 0
    assert listed["path"] == JOBS
    assert listed["address"] == "198.51.100.7"
    assert listed["key_id"] == submitted["key_id"]
    assert (entered["status"], entered["key_id"]) == (401, None)
    text = json.dumps(lines)
    for secret in (KEY, "a-secret", "a-wrong-token", "limit=3", "a-private-value"):
        assert secret not in text


@pytest.mark.parametrize("asked", [JOBS, "/nothing"])
async def test_there_are_no_lines_unless_they_are_wanted(serve: Serve, asked: str) -> None:
    server = await serve()
    with structlog.testing.capture_logs() as lines:
        await server.http.get(asked)
    assert lines == []
