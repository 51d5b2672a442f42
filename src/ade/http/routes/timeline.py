"""`/{ws}/jobs/{id}/timeline`: all that happens to a job, in one stream."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from ade.app.times import rfc3339
from ade.events.event_file import event_json
from ade.events.output_log import LogPiece
from ade.events.timeline import Timeline, TimelineItem, TimelineStart, follow_timeline
from ade.http.auth import Authorization
from ade.http.context import AppContext
from ade.http.fair_share import FairShare
from ade.http.openapi import answers
from ade.http.routes.output import build_of_log
from ade.http.sse import HEARTBEAT, NDJSON, NEVER_STORED, SSE, HeldStream
from ade.store.rows import JobRef, JobRow

BEGINNING = "0.0"
PLACE = r"^[0-9]{1,9}\.(build:)?[0-9]{1,9}$"
CONTENT = {name: {"schema": {"type": "string"}} for name in (NDJSON, SSE)}
After = Annotated[str, Query(pattern=PLACE, description="the `id` of the last item that is known")]


def item_json(item: TimelineItem) -> dict[str, Any]:
    """Show an event or a piece of output; both have the same fields."""
    if not isinstance(item.what, LogPiece):
        return {"id": item.place, **event_json(item.what)}
    piece = item.what
    return {
        "id": item.place,
        "seq": piece.seq,
        "at": rfc3339(piece.at),
        "event": f"output.{piece.stream}",
        "job_id": item.job_id,
        "data": {
            "attempt": piece.attempt,
            "offset": piece.starts,
            "dropped_bytes": piece.dropped_bytes,
            "text": piece.text,
        },
    }


def sse_text(items: list[TimelineItem]) -> str:
    """Write items as server-sent events; an empty list is a heartbeat."""
    if not items:
        return HEARTBEAT
    shown = [item_json(item) for item in items]
    return "".join(
        f"id: {one['id']}\nevent: {one['event']}\ndata: {json.dumps(one)}\n\n" for one in shown
    )


def timeline_routes(context: AppContext, streams: FairShare) -> APIRouter:
    """Make the route of timelines; `streams` limits how many follow them."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs/{job_id}", tags=["jobs"])
    kernel = context.kernel
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]

    async def start_of(job: JobRow, place: str) -> TimelineStart:
        event_seq, _, log_place = place.partition(".")
        ref = JobRef(job.workspace_id, job.id)
        build = await build_of_log(context, job)
        return TimelineStart(ref, build, int(event_seq), log_place)

    async def followed(start: TimelineStart) -> AsyncIterator[str]:
        async for items in follow_timeline(kernel, start):
            yield sse_text(items)

    async def written(start: TimelineStart) -> AsyncIterator[str]:
        timeline = Timeline(start)
        while not (seen := await kernel.read(timeline.look)).is_empty:
            for item in timeline.take(seen):
                yield json.dumps(item_json(item)) + "\n"

    @router.get(
        "/timeline",
        responses=answers(200, None, "Events and output", 404, 422, 429, content=CONTENT),
    )
    async def read_timeline(
        request: Request,
        auth: Viewer,
        job_id: str,
        after: After = BEGINNING,
        last_event_id: Annotated[str | None, Header(pattern=PLACE)] = None,
    ) -> Response:
        """Read all that happened to a job so far, or follow it as server-sent events.

        These are its events, and as `output.stdout`, `output.stderr` and `output.step` what it
        writes and what the build writes that it waits for. The stream ends when the job has ended;
        `Last-Event-ID` resumes it.
        """
        job = await context.job(auth, job_id)
        start = await start_of(job, last_event_id or after)
        if SSE not in request.headers.get("accept", ""):
            return StreamingResponse(written(start), media_type=NDJSON, headers=NEVER_STORED)
        streams.enter(auth)
        return HeldStream(streams, auth, followed(start))

    return router
