"""The calls of `ade agent` over the real server."""

from pathlib import Path

import httpx
import pytest
from tests.api.server import JOBS, KEY, Server

from ade.agents.agent_key import KeyFile, enrol, read_key
from ade.agents.contract_calls import ContractCalls
from ade.domain.errors import (
    InvalidTransition,
    NotFound,
    OutputGap,
    StaleAttempt,
    Unauthenticated,
    Unavailable,
)
from ade.storage.attempt_logs import LogState

CONTAINER = {"job_type": "container", "inputs": {"image": "busybox", "network": "bridge"}}
NOWHERE = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def calls(server: Server) -> ContractCalls:
    return ContractCalls(server.client(KEY), "a", [])


async def test_a_job_is_taken_and_reported(server: Server, calls: ContractCalls) -> None:
    assert await calls.next_job(0) is None
    await server.http.post(JOBS, json=CONTAINER)
    order = await calls.next_job(0)
    assert order is not None
    assert order["container"]["network"] == "bridge"
    proof = {name: order[name] for name in ("job_id", "attempt_number", "attempt_token")}
    assert (await calls.report({**proof, "status": "running"}))["stop_requested"] is False
    assert await calls.append_output(proof, 0, b"abc", is_last=False) == LogState(3)
    with pytest.raises(OutputGap) as gap:
        await calls.append_output(proof, 5, b"x", is_last=False)
    assert gap.value.held_bytes == 3
    assert await calls.append_output(proof, 3, b"", is_last=True) == LogState(3)
    assert await calls.held_output(proof) == LogState(3)
    await server.http.post(f"{JOBS}/{order['job_id']}/cancel")
    assert (await calls.status(order["job_id"]))["stop_requested"] is True
    await calls.report({**proof, "status": "stopped", "exit_code": 137})
    await calls.report({**proof, "status": "stopped"})  # the answer may have been lost
    with pytest.raises(InvalidTransition):
        await calls.report({**proof, "status": "failed"})
    with pytest.raises(StaleAttempt):
        await calls.report({**proof, "attempt_token": "wrong", "status": "stopped"})
    with pytest.raises(StaleAttempt):
        await calls.append_output({**proof, "attempt_token": "wrong"}, 3, b"x", is_last=False)
    with pytest.raises(InvalidTransition):  # an answer to HEAD has no body that says more
        await calls.held_output({**proof, "attempt_token": "wrong"})
    with pytest.raises(NotFound):
        await calls.status(NOWHERE)


async def test_a_heartbeat_is_seen(server: Server, calls: ContractCalls) -> None:
    await calls.heartbeat({"load": 0.5}, [])
    assert "a" in (await server.http.get("/hosts")).json()["hosts"]


async def test_a_key_is_traded_for_a_code_and_read_again_after_a_rotation(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "folder" / "key"
    with pytest.raises(Unauthenticated, match="cannot be read"):
        read_key(path)
    made = (await server.http.post("/api/v1/agents", json={"name": "a"})).json()
    http = server.client()
    with pytest.raises(Unauthenticated, match="not valid"):
        await enrol(http, "wrong", path)
    assert not path.exists()
    await enrol(http, made["enrolment_code"], path)
    calls = ContractCalls(server.client(auth=KeyFile(path, "a")), "a", [])
    await calls.heartbeat({}, [])
    key = path.read_text()
    path.write_text("ade_agent_of_another_time")
    broken = ContractCalls(server.client(auth=KeyFile(path, "a")), "a", [])
    with pytest.raises(Unavailable):
        await broken.heartbeat({}, [])
    path.write_text(key)
    await broken.heartbeat({}, [])
    await enrol(http, "not valid", path)
    await enrol(http, made["enrolment_code"], path)
    assert path.read_text() == key
    rotated = (await server.http.post("/api/v1/agents/a/rotate", json={})).json()
    await enrol(http, rotated["enrolment_code"], path)
    assert path.read_text() != key
    await broken.heartbeat({}, [])


async def test_an_error_of_something_else_is_no_answer() -> None:
    def proxy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, text="<h1>Not Found</h1>")

    http = httpx.AsyncClient(transport=httpx.MockTransport(proxy), base_url="http://ade")
    with pytest.raises(Unavailable, match="404"):
        await ContractCalls(http, "a", []).status(NOWHERE)


async def test_a_server_that_is_away_is_unavailable() -> None:
    async with httpx.AsyncClient(base_url="http://127.0.0.1:9") as http:
        with pytest.raises(Unavailable):
            await ContractCalls(http, "a", []).next_job(0)
