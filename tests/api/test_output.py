"""What jobs write: read while they run, followed, resumed, cut, and kept apart by attempt."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.api.conftest import Serve
from tests.api.server import KEY, Server, problem, succeeded

from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.domain.output import Piece, batch_of
from ade.stages.finish import Finish
from ade.stages.output import OutputAppend
from ade.store.rows import Claim, LeaseRef

SSE = {"Accept": "text/event-stream"}


def output(claim: Claim, *pieces: tuple[str, int, str], dropped: Any = None) -> OutputAppend:
    """Put pieces into one batch of an attempt."""
    lease = LeaseRef(claim.workspace_id, claim.id, claim.fence)
    return OutputAppend(lease, (batch_of(Piece(*piece) for piece in pieces),), dropped)


async def write(server: Server, claim: Claim, *pieces: tuple[str, int, str], **more: Any) -> None:
    """Append output, as a worker does."""
    await server.kernel.append_output(output(claim, *pieces, **more))


async def lines(server: Server, job: dict[str, Any], after: str = "0", **more: Any) -> list[Any]:
    """Poll the log."""
    answer = await server.http.get(job["links"]["logs"], params={"after": after, **more})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def parse(text: str) -> list[tuple[str, str, str]]:
    """Read server-sent events: their id, type and text."""
    found = []
    for block in text.strip().split("\n\n"):
        if block and not block.startswith(":"):
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            found.append((fields["id"], fields["event"], json.loads(fields["data"])["text"]))
    return found


class Listener:
    """Follow a log on a real connection."""

    def __init__(self, stream: httpx.Response) -> None:
        self._lines = stream.aiter_lines()

    async def next(self) -> dict[str, Any]:
        """Wait for the next piece."""
        async with asyncio.timeout(20):
            async for line in self._lines:
                if line.startswith("data: "):
                    found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    return found
        raise AssertionError("the stream ended")

    async def ends(self) -> bool:
        """Wait for the end; False if another piece came first."""
        async with asyncio.timeout(20):
            async for line in self._lines:
                if line.startswith("data: "):
                    return False
        return True


@asynccontextmanager
async def listening(server: Server, job: dict[str, Any], **headers: str) -> AsyncIterator[Listener]:
    """Follow the log of a job while inside."""
    wanted = {**SSE, "Authorization": f"Bearer {KEY}", **headers}
    async with (
        server.on_the_wire() as url,
        httpx.AsyncClient(base_url=url, headers=wanted, timeout=30) as http,
        http.stream("GET", job["links"]["logs"]) as stream,
    ):
        yield Listener(stream)


async def test_output_is_read_while_the_job_runs(database_url: str, serve: Serve) -> None:
    server, other = await serve(database_url), await serve(database_url)
    job = await server.submit()
    assert await lines(other, job) == []
    claim = await server.claim()
    await write(server, claim, ("stdout", 0, "one\n"), ("stderr", 4, "two\n"))
    seen = await lines(other, job)
    assert [(one["id"], one["stream"], one["text"], one["attempt"]) for one in seen] == [
        ("1", "stdout", "one\n", 1),
        ("2", "stderr", "two\n", 1),
    ]
    assert all(one["job_id"] == job["job_id"] and one["at"].endswith("Z") for one in seen)
    assert (await other.http.get(job["links"]["logs"])).text == "one\n"
    errors = await other.http.get(job["links"]["logs"], params={"stream": "stderr"})
    assert errors.text == "two\n"
    await write(server, claim, ("stdout", 8, "three\n"))
    assert [one["text"] for one in await lines(other, job, after="2")] == ["three\n"]
    assert [one["text"] for one in await lines(other, job, after="1")] == ["two\n", "three\n"]
    assert [one["id"] for one in await lines(other, job, stream="stdout")] == ["1", "3"]


async def test_output_is_followed_to_the_end_from_any_process(
    database_url: str, serve: Serve
) -> None:
    server, other = await serve(database_url), await serve(database_url)
    job = await server.submit()
    async with listening(other, job) as listener:
        claim = await server.claim()
        await write(server, claim, ("stdout", 0, "first"))
        assert (await listener.next())["text"] == "first"
        await write(server, claim, ("step", 5, "writing"))
        assert (await listener.next())["stream"] == "step"
        last = output(claim, ("stderr", 12, "last"))
        await server.kernel.finish(Finish(claim, succeeded(), last))
        assert (await listener.next())["text"] == "last"
        assert await listener.ends()


@pytest.mark.parametrize("how", [{"headers": {"Last-Event-ID": "2"}}, {"params": {"after": "2"}}])
async def test_a_stream_is_resumed(server: Server, how: dict[str, Any]) -> None:
    job = await server.submit()
    claim = await server.claim()
    await write(server, claim, ("stdout", 0, "a"), ("stderr", 1, "b"), ("stdout", 2, "c"))
    await server.finish(claim)
    headers = {**SSE, **how.pop("headers", {})}
    answer = await server.http.get(job["links"]["logs"], headers=headers, **how)
    assert parse(answer.text) == [("3", "stdout", "c")]


async def test_attempts_are_told_apart(server: Server) -> None:
    job = await server.submit()
    first = await server.claim()
    await write(server, first, ("stdout", 0, "first try"))
    await server.kernel.finish(Finish(first, None))
    logs = job["links"]["logs"]
    assert (await server.http.get(logs)).text == "first try"
    second = await server.claim()
    assert (await server.http.get(logs)).text == ""
    await write(server, second, ("stdout", 0, "second try"))
    assert [(one["id"], one["attempt"], one["text"]) for one in await lines(server, job)] == [
        ("1", 1, "first try"),
        ("2", 2, "second try"),
    ]
    assert (await server.http.get(logs)).text == "second try"
    assert (await server.http.get(logs, params={"attempt": 1})).text == "first try"
    assert (await server.http.get(logs, params={"attempt": 3})).text == ""


async def test_what_is_missing_is_said(server: Server) -> None:
    job = await server.submit()
    claim = await server.claim()
    await write(server, claim, ("stdout", 0, "head\n"))
    await write(server, claim, ("stdout", 5, "dropped\n"))
    await write(server, claim, ("stdout", 100, "tail\n"), dropped=(5, 100))
    seen = await lines(server, job)
    assert [(one["id"], one["text"], one["dropped_bytes"]) for one in seen] == [
        ("1", "head\n", 0),
        ("3", "tail\n", 95),
    ]
    text = (await server.http.get(job["links"]["logs"])).text
    assert text == "head\n\n[output cut: 95 bytes were dropped here]\ntail\n"
    # The reader who saw what was dropped since is told how much is missing before the next piece.
    (after,) = await lines(server, job, after="2")
    assert (after["id"], after["dropped_bytes"]) == ("3", 95)
    (after,) = await lines(server, job, after="1")
    assert after["dropped_bytes"] == 95


@pytest.mark.parametrize("status", ["succeeded", "failed", "timed_out", "cancelled", "paused"])
async def test_output_is_kept_on_every_kind_of_end(server: Server, status: str) -> None:
    job = await server.submit()
    claim = await server.claim()
    await write(server, claim, ("stdout", 0, "before "))
    last = output(claim, ("stdout", 7, "the end"))
    await server.kernel.finish(Finish(claim, Outcome(Status(status)), last))
    assert (await server.http.get(job["links"]["self"])).json()["status"] == status
    assert (await server.http.get(job["links"]["logs"])).text == "before the end"
    tail = await server.http.get(job["links"]["logs"], params={"tail": 1})
    assert tail.text == "before the end"


async def test_the_log_of_another_workspace_is_not_found(server: Server) -> None:
    job = await server.submit()
    made = await server.http.post("/api/v1/workspaces", json={"slug": "other", "name": "Other"})
    assert made.status_code == 201
    path = f"/api/v1/workspaces/other/jobs/{job['job_id']}/logs"
    for headers in ({}, SSE):
        problem(await server.http.get(path, headers=headers), 404, "not_found")


@pytest.mark.parametrize("place", ["-1", "x", "build:", "1.5", "9" * 12])
async def test_a_place_that_is_none_is_refused(server: Server, place: str) -> None:
    job = await server.submit()
    answer = await server.http.get(job["links"]["logs"], params={"after": place})
    problem(answer, 422, "validation_error")


async def test_the_timeline_has_events_and_output_in_one_order(server: Server) -> None:
    job = await server.submit()
    claim = await server.claim()
    await write(server, claim, ("stdout", 0, "one\n"))
    last = output(claim, ("stderr", 4, "two\n"))
    await server.kernel.finish(Finish(claim, succeeded(), last))
    path = f"{job['links']['self']}/timeline"
    found = [json.loads(line) for line in (await server.http.get(path)).text.splitlines()]
    assert [(one["id"], one["event"]) for one in found] == [
        ("1.0", "job.queued"),
        ("2.0", "job.started"),
        ("2.1", "output.stdout"),
        ("2.2", "output.stderr"),
        ("3.2", "job.succeeded"),
    ]
    assert found[3]["data"]["text"] == "two\n"
    streamed = await server.http.get(path, headers=SSE)
    ids = [line[4:] for line in streamed.text.splitlines() if line.startswith("id: ")]
    assert ids == [one["id"] for one in found]
    for number, one in enumerate(found):
        rest = await server.http.get(path, headers={**SSE, "Last-Event-ID": one["id"]})
        ids = [line[4:] for line in rest.text.splitlines() if line.startswith("id: ")]
        assert ids == [later["id"] for later in found[number + 1 :]]


async def test_the_timeline_is_followed(database_url: str, serve: Serve) -> None:
    server = await serve(database_url)
    job = await server.submit()
    timeline = {"links": {"logs": f"{job['links']['self']}/timeline"}}
    async with listening(server, timeline) as listener:
        assert (await listener.next())["event"] == "job.queued"
        claim = await server.claim()
        assert (await listener.next())["event"] == "job.started"
        await write(server, claim, ("step", 0, "reading\n"))
        assert (await listener.next())["data"]["text"] == "reading\n"
        await server.finish(claim)
        assert (await listener.next())["event"] == "job.succeeded"
        assert await listener.ends()


async def test_a_long_timeline_is_whole_and_in_order(server: Server) -> None:
    job = await server.submit()
    claim = await server.claim()
    for number in range(70):
        await write(server, claim, ("stdout", number, "x"))
    await server.finish(claim)
    path = f"{job['links']['self']}/timeline"
    found = [json.loads(line) for line in (await server.http.get(path)).text.splitlines()]
    assert [one["event"] for one in found] == [
        "job.queued",
        "job.started",
        *["output.stdout"] * 70,
        "job.succeeded",
    ]
