"""The event log: lines of JSON, server-sent events, and resuming where one left off."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.api.conftest import Serve
from tests.api.server import KEY, Server, problem
from tests.processes import aeventually

from ade.domain.events import EventType
from ade.events.stream import follow
from ade.http.routes import logs
from ade.stages.report import AttemptReport
from ade.store.rows import JobRef, LeaseRef

SSE = {"Accept": "text/event-stream"}


def parse(text: str) -> list[dict[str, Any]]:
    """Read server-sent events as a browser would."""
    events = []
    for block in text.strip().split("\n\n"):
        if block.startswith(":"):
            continue
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        events.append(
            {"id": int(fields["id"]), "event": fields["event"]} | json.loads(fields["data"])
        )
    return events


async def test_the_log_so_far_is_lines_of_json(server: Server) -> None:
    job = await server.run()
    answer = await server.http.get(job["links"]["events"])
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert [event["event"] for event in events] == ["job.queued", "job.started", "job.succeeded"]
    assert all(event["job_id"] == job["job_id"] for event in events)
    rest = await server.http.get(job["links"]["events"], params={"after": 2})
    assert rest.text.splitlines() == answer.text.splitlines()[2:]


async def test_a_log_longer_than_one_read_is_whole(server: Server) -> None:
    job = await server.submit()
    claim = await server.claim()
    note = (EventType.LOG, {"message": "x"})
    held = LeaseRef(claim.workspace_id, claim.id, claim.fence)
    await server.kernel.report(AttemptReport(held, (note,) * 1200))
    lines = (await server.http.get(job["links"]["events"])).text.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 1203))


async def test_a_stream_of_an_ended_job_ends(server: Server) -> None:
    job = await server.run()
    answer = await server.http.get(job["links"]["events"], headers=SSE)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert [event["id"] for event in parse(answer.text)] == [1, 2, 3]


@pytest.mark.parametrize("how", [{"headers": {"Last-Event-ID": "2"}}, {"params": {"after": 2}}])
async def test_a_stream_is_resumed(server: Server, how: dict[str, Any]) -> None:
    job = await server.run()
    headers = {**SSE, **how.pop("headers", {})}
    answer = await server.http.get(job["links"]["events"], headers=headers, **how)
    assert [event["event"] for event in parse(answer.text)] == ["job.succeeded"]


async def test_a_stream_carries_events_as_they_happen(database_url: str, serve: Any) -> None:
    server = await serve(database_url)
    job = await server.submit()
    headers = {**SSE, "Authorization": f"Bearer {KEY}"}
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def listen(url: str) -> None:
        async with (
            httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as http,
            http.stream("GET", job["links"]["events"]) as stream,
        ):
            async for line in stream.aiter_lines():
                if line.startswith("event: "):
                    seen.put_nowait(line)
        seen.put_nowait("end")

    async with server.on_the_wire() as url, asyncio.timeout(20):
        listener = asyncio.create_task(listen(url))
        assert await seen.get() == "event: job.queued"
        claim = await server.claim()
        assert await seen.get() == "event: job.started"
        await server.finish(claim)
        assert await seen.get() == "event: job.succeeded"
        assert await seen.get() == "end"
        await listener


async def test_a_reader_that_leaves_is_forgotten(server: Server) -> None:
    job = await server.submit()
    headers = {**SSE, "Authorization": f"Bearer {KEY}"}
    async with (
        server.on_the_wire() as url,
        httpx.AsyncClient(base_url=url, headers=headers) as http,
    ):
        async with http.stream("GET", job["links"]["events"]) as stream:
            await anext(stream.aiter_lines())
            assert server.kernel.notifier._subscriptions
        left = asyncio.Event()
        server.kernel.notifier._subscriptions = Watched(server.kernel.notifier._subscriptions, left)
        async with asyncio.timeout(10):
            await left.wait()


class Watched(dict[str, Any]):
    """Tell when the last one has left."""

    def __init__(self, bells: dict[str, Any], left: asyncio.Event) -> None:
        super().__init__(bells)
        self._left = left
        if not bells:
            left.set()

    def __delitem__(self, topic: str) -> None:
        super().__delitem__(topic)
        if not self:
            self._left.set()


async def test_a_quiet_stream_shows_signs_of_life(server: Server) -> None:
    job = await server.submit()
    ref = JobRef(job["workspace_id"], job["job_id"])
    stream = follow(server.kernel, ref, 0, heartbeat_seconds=0.01)
    assert [event.seq for event in await anext(stream)] == [1]
    assert await anext(stream) == []
    assert logs.sse_text([]).startswith(":")
    await server.finish(await server.claim())
    rest = [event.type for events in [batch async for batch in stream] for event in events]
    assert rest == ["job.started", "job.succeeded"]


async def test_more_streams_than_allowed_are_refused(serve: Serve) -> None:
    server = await serve(streams_per_key=1)
    job = await server.submit()
    async with server.on_the_wire() as url, server.http_to(url) as http:
        async with http.stream("GET", job["links"]["events"], headers=SSE) as first:
            assert first.status_code == 200
            answer = await http.get(job["links"]["events"], headers=SSE)
            problem(answer, 429, "too_many_requests")
            assert answer.headers["retry-after"]

        async def again() -> bool:
            async with http.stream("GET", job["links"]["events"], headers=SSE) as second:
                return second.status_code == 200

        await aeventually(again)  # the first has given its place back
        await server.finish(await server.claim())
