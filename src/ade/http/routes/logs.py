"""`/{ws}/jobs/{id}/events|logs|attempts`: what happened to a job, and what it said."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from ade.domain.errors import NotFound, Unavailable
from ade.events.event_file import event_json
from ade.events.stream import EVENTS_PER_READ, follow
from ade.http.attempts import read_attempts
from ade.http.auth import Grant
from ade.http.door import NO_JOB, Door, job_ref
from ade.http.openapi import answers
from ade.http.schemas.jobs import Attempt, AttemptPage
from ade.http.schemas.results import output_text
from ade.store.port import Reading
from ade.store.rows import JobRef, NewEvent
from ade.telemetry import metrics

SEQ_MAX = 2**31 - 1
TAIL_LINES_MAX = 100_000
STREAMS_MAX = 1000
SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
TEXT = {"text/plain": {"schema": {"type": "string"}}}
NEVER_STORED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
Place = Annotated[int, Query(ge=0, le=SEQ_MAX, description="the last sequence that is known")]


def sse_text(events: list[NewEvent]) -> str:
    """Write events as server-sent events; none at all is a comment, a sign of life."""
    if not events:
        return ": alive\n\n"
    return "".join(
        f"id: {event.seq}\nevent: {event.type}\ndata: {json.dumps(event_json(event))}\n\n"
        for event in events
    )


def ndjson_text(events: list[NewEvent]) -> str:
    """Write events as lines of JSON."""
    return "".join(json.dumps(event_json(event)) + "\n" for event in events)


def log_routes(door: Door) -> APIRouter:
    """Make the routes that tell what happened to a job."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs/{job_id}", tags=["jobs"])
    kernel = door.kernel
    Viewer = Annotated[Grant, Depends(door.gatekeeper.viewer)]
    open_streams = 0

    async def streamed(ref: JobRef, after: int) -> AsyncIterator[str]:
        nonlocal open_streams
        open_streams += 1
        metrics.stream_opened()
        try:
            async for events in follow(kernel, ref, after):
                yield sse_text(events)
        finally:
            open_streams -= 1
            metrics.stream_closed()

    async def read_after(ref: JobRef, after: int) -> list[NewEvent]:
        return await kernel.read(lambda reading: reading.read_events(ref, after, EVENTS_PER_READ))

    async def written(ref: JobRef, after: int) -> AsyncIterator[str]:
        while events := await read_after(ref, after):
            after = events[-1].seq
            yield ndjson_text(events)

    @router.get(
        "/events",
        responses=answers(
            200,
            None,
            "The event log",
            404,
            422,
            content={NDJSON: {"schema": {"type": "string"}}, SSE: {"schema": {"type": "string"}}},
        ),
    )
    async def read_events(
        request: Request,
        grant: Viewer,
        job_id: str,
        after: Place = 0,
        last_event_id: Annotated[int | None, Header(ge=0, le=SEQ_MAX)] = None,
    ) -> Response:
        """Read the event log as lines of JSON so far, or follow it as server-sent events.

        The stream ends when the job has ended and every event was sent; `Last-Event-ID` resumes it.
        """
        job = await door.job(grant, job_id)
        ref = JobRef(job.workspace_id, job.id)
        start = after if last_event_id is None else last_event_id
        if SSE not in request.headers.get("accept", ""):
            return StreamingResponse(written(ref, start), media_type=NDJSON, headers=NEVER_STORED)
        if open_streams >= STREAMS_MAX:
            raise Unavailable(f"{STREAMS_MAX} event streams are open already; try again shortly.")
        return StreamingResponse(streamed(ref, start), media_type=SSE, headers=NEVER_STORED)

    @router.get(
        "/logs",
        responses=answers(
            200,
            None,
            "What it wrote",
            404,
            422,
            content=TEXT,
        ),
    )
    async def read_logs(
        grant: Viewer,
        job_id: str,
        stream: Literal["stdout", "stderr"] = "stdout",
        tail: Annotated[int | None, Query(ge=1, le=TAIL_LINES_MAX)] = None,
    ) -> Response:
        """Read what the job wrote to a stream, or its last lines; empty until it has ended."""
        ref = job_ref(grant, job_id)
        job, body = await kernel.read(lambda r: (r.read_job(ref), r.read_result(ref)))
        if job is None:
            raise NotFound(NO_JOB)
        return PlainTextResponse(output_text(body, stream, tail), headers=NEVER_STORED)

    @router.get("/attempts", responses=answers(200, AttemptPage, "Attempts", 404))
    async def list_attempts(grant: Viewer, job_id: str) -> AttemptPage:
        """List who ran the job, when, and how each attempt ended."""
        ref = job_ref(grant, job_id)

        def look(reading: Reading) -> list[Attempt]:
            if reading.read_job(ref) is None:
                raise NotFound(NO_JOB)
            return read_attempts(reading, ref)

        return {"items": await kernel.read(look), "next_cursor": None}

    return router
