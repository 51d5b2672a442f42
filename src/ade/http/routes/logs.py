"""`/{ws}/jobs/{id}/events|attempts`: what happened to a job."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ade.app.times import rfc3339
from ade.domain.errors import NotFound
from ade.domain.events import ENDS_ATTEMPT, STARTS_ATTEMPT
from ade.events.event_file import event_json
from ade.events.stream import EVENTS_PER_READ, follow
from ade.http.auth import Authorization
from ade.http.context import NO_JOB, AppContext, job_ref
from ade.http.fair_share import FairShare
from ade.http.openapi import answers
from ade.http.schemas.jobs import Attempt, AttemptPage
from ade.http.sse import HEARTBEAT, NDJSON, NEVER_STORED, SSE, HeldStream
from ade.store.port import Reading
from ade.store.rows import JobRef, NewEvent

SEQ_MAX = 2**31 - 1
_STARTS = frozenset(kind.value for kind in STARTS_ATTEMPT)
_ENDS = frozenset(kind.value for kind in ENDS_ATTEMPT)
After = Annotated[int, Query(ge=0, le=SEQ_MAX, description="the last sequence that is known")]


def sse_text(events: list[NewEvent]) -> str:
    """Write events as server-sent events; an empty list is a comment, as a heartbeat."""
    if not events:
        return HEARTBEAT
    return "".join(
        f"id: {event.seq}\nevent: {event.type}\ndata: {json.dumps(event_json(event))}\n\n"
        for event in events
    )


def ndjson_text(events: list[NewEvent]) -> str:
    """Write events as lines of JSON."""
    return "".join(json.dumps(event_json(event)) + "\n" for event in events)


def log_routes(context: AppContext, streams: FairShare) -> APIRouter:
    """Make the routes of events and attempts; `streams` limits how many follow them."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs/{job_id}", tags=["jobs"])
    kernel = context.kernel
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]

    async def streamed(ref: JobRef, after: int) -> AsyncIterator[str]:
        async for events in follow(kernel, ref, after):
            yield sse_text(events)

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
            429,
            503,
            content={NDJSON: {"schema": {"type": "string"}}, SSE: {"schema": {"type": "string"}}},
        ),
    )
    async def read_events(
        request: Request,
        auth: Viewer,
        job_id: str,
        after: After = 0,
        last_event_id: Annotated[int | None, Header(ge=0, le=SEQ_MAX)] = None,
    ) -> Response:
        """Read the event log as lines of JSON so far, or follow it as server-sent events.

        The stream ends when the job has ended and every event was sent; `Last-Event-ID` resumes it.
        """
        job = await context.job(auth, job_id)
        ref = JobRef(job.workspace_id, job.id)
        start = after if last_event_id is None else last_event_id
        if SSE not in request.headers.get("accept", ""):
            return StreamingResponse(written(ref, start), media_type=NDJSON, headers=NEVER_STORED)
        streams.enter(auth)
        return HeldStream(streams, auth, streamed(ref, start))

    @router.get("/attempts", responses=answers(200, AttemptPage, "Attempts", 404))
    async def list_attempts(auth: Viewer, job_id: str) -> AttemptPage:
        """List the attempts: which worker ran the job, when, and how each ended."""
        ref = job_ref(auth, job_id)

        def look(reading: Reading) -> list[Attempt]:
            if reading.read_job(ref) is None:
                raise NotFound(NO_JOB)
            return read_attempts(reading, ref)

        return {"items": await kernel.read(look), "next_cursor": None}

    return router


def read_attempts(reading: Reading, ref: JobRef) -> list[Attempt]:
    """Derive the attempts of a job from its event log."""
    found: dict[int, Attempt] = {}
    after = 0
    while events := reading.read_events(ref, after, EVENTS_PER_READ):
        for event in events:
            _note(found, event)
        after = events[-1].seq
    return list(found.values())


def _note(found: dict[int, Attempt], event: NewEvent) -> None:
    if event.type not in _STARTS and event.type not in _ENDS:
        return
    data = json.loads(event.data)
    number = data.get("attempt")
    if event.type in _STARTS:
        attempt = found.setdefault(number, _new(number, event))
        attempt["worker"] = data.get("worker", attempt["worker"])
    elif number in found and found[number]["ended_at"] is None:
        attempt = found[number]
        attempt["status"] = event.type.removeprefix("job.")
        attempt["ended_at"] = rfc3339(event.at)
        attempt["error"] = data.get("error")


def _new(number: int, event: NewEvent) -> Attempt:
    return {
        "attempt": number,
        "worker": None,
        "status": "running",
        "started_at": rfc3339(event.at),
        "ended_at": None,
        "error": None,
    }
