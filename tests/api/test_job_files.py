"""What jobs of the worker contract leave behind: output, progress, results."""

import asyncio
from pathlib import Path

import pytest
from tests.api.agents import PlainWorker
from tests.api.server import Server


@pytest.fixture
def worker(server: Server) -> PlainWorker:
    return PlainWorker(server.http, "gpu")


async def running(server: Server, worker: PlainWorker) -> str:
    answer = await server.http.post("/run-simulation", json={"config": {"steps": 3}})
    job_id = str(answer.json()["job_id"])
    await worker.take()
    await worker.say(job_id, "running")
    return job_id


def folder(server: Server, job_id: str) -> Path:
    return server.app.mirror.folder.root / "jobs" / job_id


def log_file(server: Server, job_id: str) -> Path:
    return folder(server, job_id) / "logs" / f"{job_id}.log"


async def test_a_worker_writes_the_log_and_it_can_be_read(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    empty = await server.http.get(f"/file-logs/{job_id}")
    assert (empty.status_code, empty.content) == (200, b"")
    written = b"step 1\n\xff\x00<script>\n"
    log_file(server, job_id).write_bytes(written)
    answer = await server.http.get(f"/file-logs/{job_id}")
    assert answer.content == written
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_stream_goes_on_to_the_end_of_the_job(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    log_file(server, job_id).write_bytes(b"first\n")
    async with asyncio.timeout(60), server.on_the_wire() as url, server.http_to(url) as http:
        stream = http.stream("GET", f"/logs/{job_id}")
        async with stream as answer:
            pieces = answer.aiter_bytes()
            assert await anext(pieces) == b"first\n"
            with log_file(server, job_id).open("ab") as file:
                file.write(b"second\n")
            assert await anext(pieces) == b"second\n"
            with log_file(server, job_id).open("ab") as file:
                file.write(b"last\n")
            await worker.say(job_id, "finished", exit_code=0)
            assert b"".join([piece async for piece in pieces]) == b"last\n"


async def test_a_large_log_is_complete(server: Server, worker: PlainWorker) -> None:
    job_id = await running(server, worker)
    written = b"0123456789abcdef" * 100_000
    log_file(server, job_id).write_bytes(written)
    await worker.say(job_id, "finished")
    for path in ("logs", "file-logs"):
        assert (await server.http.get(f"/{path}/{job_id}")).content == written


async def test_progress_and_result_are_what_the_job_wrote(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    assert (await server.http.get(f"/progress/{job_id}")).json() == {}
    missing = await server.http.get(f"/result/{job_id}")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "running" in missing.json()["detail"]
    (folder(server, job_id) / "progress" / "progress.json").write_text('{"step": 1}')
    (folder(server, job_id) / "results" / "result.json").write_text('{"kpi": NaN}')
    assert (await server.http.get(f"/progress/{job_id}")).json() == {"step": 1}
    assert (await server.http.get(f"/result/{job_id}")).json() == {"kpi": None}


async def test_a_result_that_was_sent_with_the_end_is_shown(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    await worker.say(job_id, "finished", exit_code=0, result={"kpi": 7})
    assert (await server.http.get(f"/result/{job_id}")).json() == {"kpi": 7}


@pytest.mark.parametrize("result", [0, False, [], {}, ""])
async def test_a_result_that_is_empty_is_a_result(
    server: Server, worker: PlainWorker, result: object
) -> None:
    job_id = await running(server, worker)
    await worker.say(job_id, "finished", exit_code=0, result=result)
    shown = await server.http.get(f"/result/{job_id}")
    assert (shown.status_code, shown.json()) == (200, result)


async def test_links_and_other_traps_do_not_lead_out(
    server: Server, worker: PlainWorker, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": "leaked"}')
    job_id = await running(server, worker)
    traps = {
        "result": folder(server, job_id) / "results" / "result.json",
        "progress": folder(server, job_id) / "progress" / "progress.json",
        "logs": log_file(server, job_id),
    }
    for path in traps.values():
        path.symlink_to(secret)
    await worker.say(job_id, "finished")
    for name in traps:
        answer = await server.http.get(f"/{name}/{job_id}")
        assert "leaked" not in answer.text
        assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")


async def test_what_is_half_written_is_not_there_yet_until_the_job_has_ended(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    (folder(server, job_id) / "progress" / "progress.json").write_text('{"half')
    (folder(server, job_id) / "results" / "result.json").write_text("")
    assert (await server.http.get(f"/progress/{job_id}")).json() == {}
    assert (await server.http.get(f"/result/{job_id}")).status_code == 404
    await worker.say(job_id, "finished")
    for name in ("progress", "result"):
        answer = await server.http.get(f"/{name}/{job_id}")
        assert answer.status_code == 422
        assert "not a JSON document" in answer.json()["detail"]


async def test_a_result_that_is_too_large_is_not_read(server: Server, worker: PlainWorker) -> None:
    job_id = await running(server, worker)
    result = folder(server, job_id) / "results" / "result.json"
    with result.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    assert (await server.http.get(f"/result/{job_id}")).status_code == 413


async def test_the_output_of_a_second_attempt_follows_that_of_the_first(
    server: Server, worker: PlainWorker
) -> None:
    job_id = await running(server, worker)
    logs = server.app.state.context.agent_output.logs
    logs.append(job_id, 1, 0, b"first attempt, and long\n")
    async with asyncio.timeout(60), server.on_the_wire() as url, server.http_to(url) as http:
        stream = http.stream("GET", f"/logs/{job_id}")
        async with stream as answer:
            pieces = answer.aiter_bytes()
            assert await anext(pieces) == b"first attempt, and long\n"
            await server.http.post(f"/ops/jobs/{job_id}/requeue", json={"force": True})
            other = PlainWorker(server.http, "other")
            await other.take()
            logs.append(job_id, 2, 0, b"second\n")
            await other.say(job_id, "finished")
            assert b"".join([piece async for piece in pieces]) == b"second\n"
    assert (await server.http.get(f"/file-logs/{job_id}")).content == b"second\n"
