"""The output of containers: taken in pieces by offset, and read while it grows."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.api.conftest import Serve
from tests.api.server import JOBS, Server

from ade.app.attempt_tokens import AttemptTokens
from ade.domain.agent_pool import AgentPool
from ade.domain.vocabulary import AgentStatus
from ade.stages.agents.dispatch import Dispatch
from ade.stages.agents.report import AgentReport
from ade.storage.attempt_logs import CUT_LINE
from ade.store.rows import Claim, JobRef

CONTAINER = {"job_type": "container", "inputs": {"image": "busybox"}}


class Sender:
    """Send output as the agent that holds a job."""

    def __init__(self, server: Server, claim: Claim, token: str) -> None:
        self.server, self.claim, self.token = server, claim, token
        self.url = f"/api/agent/jobs/{claim.id}/output"

    def headers(self, **more: str) -> dict[str, str]:
        """Name the attempt."""
        named = {"Attempt-Number": str(self.claim.fence), "Attempt-Token": self.token}
        return named | {name.replace("_", "-"): value for name, value in more.items()}

    async def send(self, offset: int, piece: bytes, **more: str) -> httpx.Response:
        """Send a piece."""
        headers = self.headers(Upload_Offset=str(offset), **more)
        return await self.server.http.patch(self.url, content=piece, headers=headers)

    async def end(self) -> None:
        """Report that the job has finished."""
        ref = JobRef(self.claim.workspace_id, self.claim.id)
        await self.server.kernel.report_status(AgentReport(ref, "a", AgentStatus.FINISHED))


async def sender(server: Server) -> Sender:
    """Submit a container and give it to an agent."""
    answer = await server.http.post(JOBS, json=CONTAINER)
    assert answer.status_code == 202, answer.text
    return await again(server)


async def again(server: Server) -> Sender:
    """Give the next container to an agent."""
    claim = await server.kernel.dispatch(Dispatch("a", [AgentPool()]))
    assert claim is not None
    token = await AttemptTokens(server.directory).issue(claim.id, claim.fence)
    return Sender(server, claim, token)


async def test_pieces_are_kept_once_and_in_order(server: Server) -> None:
    agent = await sender(server)
    first = await agent.send(0, b"one\n")
    assert (first.status_code, first.headers["upload-offset"]) == (204, "4")
    assert (await agent.send(0, b"one\ntwo\n")).headers["upload-offset"] == "8"
    assert (await agent.send(4, b"two\n")).headers["upload-offset"] == "8"
    held = await server.http.head(agent.url, headers=agent.headers())
    assert (held.status_code, held.headers["upload-offset"]) == (204, "8")
    shown = await server.http.get(f"{JOBS}/{agent.claim.id}/logs")
    assert shown.text == "one\ntwo\n"
    assert shown.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_gap_is_refused_with_the_offset_that_is_held(server: Server) -> None:
    agent = await sender(server)
    await agent.send(0, b"one\n")
    gap = await agent.send(5, b"x")
    assert (gap.status_code, gap.headers["upload-offset"]) == (409, "4")
    assert gap.json()["code"] == "output_gap"


async def test_another_token_or_attempt_is_refused(server: Server) -> None:
    agent = await sender(server)
    agent.token = "wrong"
    assert (await agent.send(0, b"x")).json()["detail"]["code"] == "stale_job_attempt"
    assert (await server.http.head(agent.url, headers=agent.headers())).status_code == 409
    unnamed = await server.http.patch(agent.url, content=b"x")
    assert (unnamed.status_code, unnamed.json()["code"]) == (422, "validation_error")
    stranger = agent.headers() | {"accept-language": "de"}  # what browsers send is never trusted
    nobody = await server.client().patch(agent.url, content=b"x", headers=stranger)
    assert nobody.status_code == 401


async def test_an_earlier_attempt_is_refused_and_its_output_is_set_aside(server: Server) -> None:
    agent = await sender(server)
    await agent.send(0, b"first")
    ref = JobRef(agent.claim.workspace_id, agent.claim.id)
    back = AgentReport(ref, "a", AgentStatus.QUEUED)
    await server.kernel.report_status(back)
    assert (await agent.send(5, b" more")).status_code == 204  # no other attempt has begun
    second = await again(server)
    late = await agent.send(10, b" late")
    assert (late.status_code, late.json()["detail"]["code"]) == (409, "stale_job_attempt")
    await second.send(0, b"second")
    logs = f"{JOBS}/{ref.id}/logs"
    assert (await server.http.get(logs)).text == "second"
    assert (await server.http.get(logs, params={"attempt": 1})).text == "first more"
    resumed = await server.http.get(logs, params={"after": "1:3"})
    assert [json.loads(line)["text"] for line in resumed.text.splitlines()] == ["second"]


async def test_output_that_comes_after_the_end_is_kept(server: Server) -> None:
    agent = await sender(server)
    await agent.end()
    assert (await agent.send(0, b"late", Upload_Complete="?1")).status_code == 204
    assert (await server.http.get(f"{JOBS}/{agent.claim.id}/logs")).text == "late"


async def test_more_than_the_limit_is_dropped(serve: Serve) -> None:
    server = await serve(agent_output_max_mb=1)
    agent = await sender(server)
    await agent.send(0, b"x" * 2**20)
    cut = await agent.send(2**20, b"y")
    assert (cut.headers["upload-offset"], cut.headers["output-cut"]) == (str(2**20), "?1")
    tail = await server.http.get(f"{JOBS}/{agent.claim.id}/logs", params={"tail": 1})
    assert tail.text == CUT_LINE.decode().lstrip()
    large = await agent.send(0, b"x" * (2**20 + 1))
    assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")


async def test_pieces_of_json_end_at_whole_characters(server: Server) -> None:
    agent = await sender(server)
    await agent.send(0, "aä".encode() + b"\xc3")
    logs = f"{JOBS}/{agent.claim.id}/logs"
    lines = (await server.http.get(logs, params={"after": "1:1"})).text.splitlines()
    (piece,) = [json.loads(line) for line in lines]
    assert (piece["text"], piece["offset"], piece["id"]) == ("ä\ufffd", 1, "1:4")
    assert (await server.http.get(logs, params={"stream": "stderr"})).text == ""


@contextlib.asynccontextmanager
async def followed(server: Server, job_id: str) -> AsyncIterator[AsyncIterator[str]]:
    """Follow the log of a job."""
    headers = {"Accept": "text/event-stream"}
    async with (
        server.on_the_wire() as url,
        server.http_to(url) as http,
        http.stream("GET", f"{JOBS}/{job_id}/logs", headers=headers) as answer,
    ):
        yield (line async for line in answer.aiter_lines() if line.startswith("data: "))


async def test_a_log_is_followed_until_the_job_has_ended(server: Server) -> None:
    agent = await sender(server)
    await agent.send(0, b"\xc3")  # the first half of a character
    async with asyncio.timeout(60), followed(server, agent.claim.id) as lines:
        await agent.send(1, b"\xa4 one\n")
        assert json.loads((await anext(lines))[6:])["text"] == "ä one\n"
        await agent.send(7, b"two\n")
        assert json.loads((await anext(lines))[6:])["text"] == "two\n"
        await agent.end()
        with pytest.raises(StopAsyncIteration):
            await anext(lines)


async def test_a_folder_that_workers_share_is_shown_too(server: Server, tmp_path: Path) -> None:
    agent = await sender(server)
    folder = tmp_path / "shared" / "jobs" / agent.claim.id / "logs"
    folder.mkdir(parents=True)
    (folder / f"{agent.claim.id}.log").write_text("by the worker itself\n")
    assert (await server.http.get(f"{JOBS}/{agent.claim.id}/logs")).text == "by the worker itself\n"
