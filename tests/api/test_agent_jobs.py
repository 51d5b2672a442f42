"""A worker without a database: the same Worker, over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.server import JOBS, KEY, Server

from ade.agents.remote_kernel import RemoteKernel
from ade.domain.errors import LeaseLost, Unavailable
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.domain.output import Piece, Stream, batch_of
from ade.kinds import Kinds
from ade.kinds.echo import Echo
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.output import OutputAppend
from ade.stages.report import AttemptReport
from ade.stages.workers import RunningWorker
from ade.store.rows import LeaseRef
from ade.worker.subprocess_runner import SubprocessRunner
from ade.worker.worker import Worker, WorkerRules

ECHO = frozenset({"echo"})


def client(server: Server, name: str) -> httpx.AsyncClient:
    """Make the client of an agent, with an operator's key."""
    http = server.client(KEY)
    http.headers["agent-name"] = name
    return http


def remote(server: Server, name: str = "a") -> RemoteKernel:
    """Make the kernel of an agent."""
    return RemoteKernel(client(server, name))


@contextlib.asynccontextmanager
async def working(kernel: RemoteKernel, folder: Path) -> AsyncIterator[Worker]:
    """Run a worker over a remote kernel."""
    worker = Worker(
        "a",
        kernel=kernel,
        kinds=Kinds([Echo()]),
        runner=SubprocessRunner(file_mb_max=64, result_bytes_max=100_000),
        jobs_dir=folder,
        rules=WorkerRules(slots=2, poll_seconds=0.05, drain_grace_seconds=10),
    )
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.begin_to_drain()
        await running


async def reached(server: Server, job_id: str, statuses: set[str]) -> dict[str, Any]:
    """Wait until a job is in one of these statuses."""
    async with asyncio.timeout(60):
        with server.kernel.subscribe(job_id) as hints:
            while True:
                body = (await server.http.get(f"{JOBS}/{job_id}")).json()
                if body["status"] in statuses:
                    return dict(body)
                await hints.wait(1)


async def ended(server: Server, job_id: str) -> dict[str, Any]:
    """Wait for the end of a job."""
    return await reached(server, job_id, {"succeeded", "failed", "timed_out", "cancelled"})


async def claimed(server: Server, kernel: RemoteKernel) -> LeaseRef:
    """Submit a job and claim it."""
    await server.submit()
    (claim,) = await kernel.claim(ClaimRequest("a", 1, kinds=ECHO))
    return LeaseRef(claim.workspace_id, claim.id, claim.fence)


async def test_a_worker_runs_jobs_over_http(server: Server, tmp_path: Path) -> None:
    jobs = [await server.submit(value=value) for value in range(5)]
    async with working(remote(server), tmp_path / "agent"):
        ends = [await ended(server, job["job_id"]) for job in jobs]
    assert [end["status"] for end in ends] == ["succeeded"] * 5
    result = await server.http.get(f"{JOBS}/{jobs[3]['job_id']}/result")
    assert result.json()["outputs"]["result_json"] == 3


async def test_why_a_job_waits_knows_of_workers_elsewhere(server: Server, tmp_path: Path) -> None:
    kernel = remote(server)
    await server.kernel.note_worker(RunningWorker("local", "here", frozenset({"build"}), 2))
    job = await server.submit()

    async def reason() -> str:
        return str((await server.http.get(f"{JOBS}/{job['job_id']}")).json()["waiting"]["reason"])

    assert await reason() == "worker"
    await kernel.note_worker(RunningWorker("a", "there", ECHO, 4))
    assert await reason() == "capacity"
    (noted,) = [
        one
        for one in await server.kernel.read(lambda reading: reading.list_workers(10))
        if one.name == "a"
    ]
    assert (noted.host, noted.slots) == ("there", 4)
    await kernel.forget_worker("a")
    assert await reason() == "worker"


async def test_a_stop_request_reaches_the_worker(server: Server, tmp_path: Path) -> None:
    body = {
        "job_type": "echo",
        "document_revision_id": "rev-1",
        "inputs": {"value": 1, "sleep_ms": 50_000},
    }
    async with working(remote(server), tmp_path / "agent"):
        job = (await server.http.post(JOBS, json=body)).json()
        await reached(server, job["job_id"], {"running"})
        await server.http.post(f"{JOBS}/{job['job_id']}/cancel")
        assert (await ended(server, job["job_id"]))["status"] == "cancelled"


async def test_another_agent_can_do_nothing_with_a_job(server: Server) -> None:
    mine, other = remote(server), remote(server, "b")
    await server.submit()
    (claim,) = await mine.claim(ClaimRequest("a", 1, kinds=ECHO))
    lease = LeaseRef(claim.workspace_id, claim.id, claim.fence)
    end = Finish(claim, Outcome(Status.SUCCEEDED, {"outputs": {}}))
    piece = OutputAppend(lease, (batch_of([Piece(Stream.STDOUT, 0, "x")]),))
    with pytest.raises(LeaseLost):
        await other.finish(end)
    with pytest.raises(LeaseLost):
        await other.report(AttemptReport(lease, progress={"done": 1}))
    with pytest.raises(LeaseLost):
        await other.append_output(piece)
    (renewed,) = await other.renew([lease])
    assert isinstance(renewed, LeaseLost)
    assert (await mine.finish(end)).status is Status.SUCCEEDED
    with pytest.raises(LeaseLost):  # the first one counts
        await mine.finish(end)


async def test_a_renewal_carries_each_answer_in_its_place(server: Server) -> None:
    kernel = remote(server)
    lease = await claimed(server, kernel)
    old = lease._replace(fence=lease.fence - 1)
    lost, kept = await kernel.renew([old, lease])
    assert isinstance(lost, LeaseLost)
    assert kept == (*lease, None)


async def test_output_that_is_sent_twice_is_stored_once(server: Server) -> None:
    kernel = remote(server)
    lease = await claimed(server, kernel)
    first = batch_of([Piece(Stream.STDOUT, 0, "one\n")])
    await kernel.append_output(OutputAppend(lease, (first,)))
    second = batch_of([Piece(Stream.STDOUT, 4, "two\n")])
    await kernel.append_output(OutputAppend(lease, (first, second)))
    shown = await server.http.get(f"{JOBS}/{lease.id}/logs")
    assert (shown.text.count("one"), shown.text.count("two")) == (1, 1), shown.text


async def test_a_claim_waits_for_work(server: Server) -> None:
    http = client(server, "a")
    message = {"limit": 1, "kinds": ["echo"]}
    waiting = asyncio.create_task(
        http.post("/api/agent/claims", json=message, headers={"Prefer": "wait=99"})
    )
    job = await server.submit()
    answer = await waiting
    assert answer.headers["preference-applied"] == "wait=25"
    assert answer.json()["claims"][0][1] == job["job_id"]


async def test_a_client_that_left_takes_no_job(server: Server) -> None:
    message = {"limit": 1, "kinds": ["echo"]}
    async with server.on_the_wire() as url, server.http_to(url) as http:
        headers = {"agent-name": "left", "Prefer": "wait=20"}
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/api/agent/claims", json=message, headers=headers, timeout=0.3)
        await http.get("/healthz")  # the server has seen what came before
        job = await server.submit()
        claims = (
            await http.post(
                "/api/agent/claims", json=message, headers={"agent-name": "b", "Prefer": "wait=20"}
            )
        ).json()["claims"]
    assert [claim[1] for claim in claims] == [job["job_id"]]


async def test_a_server_that_is_away_is_unavailable() -> None:
    kernel = RemoteKernel(httpx.AsyncClient(base_url="http://127.0.0.1:9"))
    with pytest.raises(Unavailable):
        await kernel.claim(ClaimRequest("a", 1, kinds=ECHO))


async def test_an_operator_must_say_for_which_agent(server: Server) -> None:
    message = {"limit": 1, "kinds": ["echo"]}
    unnamed = await server.http.post("/api/agent/claims", json=message)
    assert unnamed.status_code == 422
    assert "Agent-Name" in unnamed.json()["detail"]
    wrong = await client(server, "a b").post("/api/agent/claims", json=message)
    assert wrong.status_code == 422
    nobody = await server.client("ade_wrong").post("/api/agent/claims", json=message)
    assert nobody.status_code == 401
