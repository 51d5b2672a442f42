"""`/{ws}/jobs/{id}/logs`: what a job writes, while it runs and afterwards.

The log of a run begins with that of the build that it waited for, or by which it failed. Places
there have the prefix `build:`, so that a reader can resume in either part. That of a container is
a file of bytes (`ade.http.container_output`), whose places have the number of the attempt before
them.
"""

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from ade.app.times import rfc3339
from ade.domain.build import BUILD_FAILED
from ade.domain.errors import NotFound
from ade.domain.output import Stream
from ade.events.output_log import LogPiece, follow_output, read_pieces, stream_text
from ade.events.timeline import OF_BUILD
from ade.http.auth import Authorization
from ade.http.container_output import ContainerLog
from ade.http.context import AppContext
from ade.http.fair_share import FairShare
from ade.http.openapi import answers
from ade.http.schemas.body import stored_json
from ade.http.schemas.results import last_lines, output_text
from ade.http.sse import HEARTBEAT, NDJSON, NEVER_STORED, SSE, HeldStream
from ade.store.rows import JobRef, JobRow

TAIL_LINES_MAX = 100_000
ATTEMPT_MAX = 2**31 - 1
PLACE = rf"^({OF_BUILD}|[0-9]{{1,9}}:)?[0-9]{{1,9}}$"
CONTENT = {name: {"schema": {"type": "string"}} for name in ("text/plain", NDJSON, SSE)}
After = Annotated[
    str | None, Query(pattern=PLACE, description="the `id` of the last piece that is known")
]


class LogPart(NamedTuple):
    """Name a part of a run's log: its own, or that of the build that it waited for."""

    prefix: str
    ref: JobRef
    after: int
    waiting: JobRef | None = None


def piece_json(part: LogPart, piece: LogPiece) -> dict[str, Any]:
    """Show a piece as lines of JSON and streams do."""
    return {
        "id": f"{part.prefix}{piece.seq}",
        "seq": piece.seq,
        "at": rfc3339(piece.at),
        "job_id": part.ref.id,
        "attempt": piece.attempt,
        "stream": piece.stream,
        "offset": piece.starts,
        "dropped_bytes": piece.dropped_bytes,
        "text": piece.text,
    }


def output_routes(context: AppContext, streams: FairShare) -> APIRouter:
    """Make the route of what jobs write; `streams` limits how many follow it."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}/jobs/{job_id}", tags=["jobs"])
    kernel = context.kernel
    Viewer = Annotated[Authorization, Depends(context.authenticator.viewer)]

    async def parts_of(job: JobRow, start: str) -> list[LogPart]:
        """Find what is to be read after a place; 0 is the beginning of it all."""
        own = JobRef(job.workspace_id, job.id)
        place = int(start.rpartition(":")[2])
        of_build = start.startswith(OF_BUILD)
        parts = [LogPart("", own, 0 if of_build else place)]
        if place and not of_build:
            return parts
        build_job = await build_of_log(context, job)
        if build_job is not None:
            parts.insert(0, LogPart(OF_BUILD, build_job, place, waiting=own))
        return parts

    async def followed(parts: list[LogPart], stream: Stream | None) -> AsyncIterator[str]:
        for part in parts:
            followed = follow_output(kernel, part.ref, part.after, waiting=part.waiting)
            async for pieces in followed:
                if not pieces:
                    yield HEARTBEAT
                for piece in _of(pieces, stream):
                    shown = piece_json(part, piece)
                    yield f"id: {shown['id']}\nevent: {piece.stream}\ndata: {json.dumps(shown)}\n\n"

    async def written(parts: list[LogPart], stream: Stream | None) -> AsyncIterator[str]:
        for part in parts:
            pieces = await kernel.read(partial(read_pieces, ref=part.ref, after=part.after))
            for piece in _of(pieces, stream):
                yield json.dumps(piece_json(part, piece)) + "\n"

    async def text_of(job: JobRow, stream: Stream, attempt: int | None) -> str:
        """Return what an attempt wrote; jobs of earlier versions have it in their result only."""
        ref = JobRef(job.workspace_id, job.id)
        pieces, body = await kernel.read(
            lambda reading: (read_pieces(reading, ref), reading.read_result(ref))
        )
        if not pieces and attempt in (None, job.fence):
            return output_text(body, stream)
        number = job.fence if attempt is None else attempt
        return stream_text([piece for piece in pieces if piece.attempt == number], stream)

    @router.get(
        "/logs", responses=answers(200, None, "What it wrote", 404, 422, 429, content=CONTENT)
    )
    async def read_logs(
        request: Request,
        auth: Viewer,
        job_id: str,
        stream: Stream | None = None,
        tail: Annotated[int | None, Query(ge=1, le=TAIL_LINES_MAX)] = None,
        attempt: Annotated[int | None, Query(ge=1, le=ATTEMPT_MAX)] = None,
        after: After = None,
        last_event_id: Annotated[str | None, Header(pattern=PLACE)] = None,
    ) -> Response:
        """Read what the job wrote, also while it runs, or follow it as server-sent events.

        As text: one stream of one attempt, by default `stdout` of the newest; `tail` returns its
        last lines. With `after`: pieces of all streams and attempts in their order, as lines of
        JSON, after the piece with this `id`; 0 is the beginning. As server-sent events: the same,
        until the job has ended; `Last-Event-ID` resumes. The log of a run begins with that of the
        build that it waited for, or by which it failed. A log over its limit lacks its middle:
        `dropped_bytes` of the next piece, or a line in the text, says how much.
        """
        job = await context.job(auth, job_id)
        start = last_event_id or after or "0"
        follows = SSE in request.headers.get("accept", "")
        if await context.agent_output.has_file(job):
            log = ContainerLog(context.agent_output, job, stream)
            if follows:
                streams.enter(auth)
                return HeldStream(streams, auth, log.events(start))
            if after is not None:
                return StreamingResponse(log.lines(start), media_type=NDJSON, headers=NEVER_STORED)
            return await log.text(tail, attempt)
        if follows:
            parts = await parts_of(job, start)
            streams.enter(auth)
            return HeldStream(streams, auth, followed(parts, stream))
        if after is not None:
            lines = written(await parts_of(job, start), stream)
            return StreamingResponse(lines, media_type=NDJSON, headers=NEVER_STORED)
        text = await text_of(job, stream or Stream.STDOUT, attempt)
        return PlainTextResponse(last_lines(text, tail), headers=NEVER_STORED)

    return router


def _of(pieces: list[LogPiece], stream: Stream | None) -> list[LogPiece]:
    return [piece for piece in pieces if stream in (None, piece.stream)]


async def build_of_log(context: AppContext, job: JobRow) -> JobRef | None:
    """Find the job that made the build of a run, if the run waited for it or failed by it."""
    if job.build_id is None:
        return None
    try:
        build = await context.catalogue.find_build(job.workspace_id, job.build_id)
    except NotFound:
        return None
    settled_at = build.finished_at
    # A build that was ready before was not waited for, and one made after the start is a later one.
    begun_at = job.started_at if job.started_at is not None else job.finished_at
    waited = settled_at is None or settled_at > job.submitted_at
    in_time = begun_at is None or (settled_at is not None and settled_at <= begun_at)
    tells_why = waited or _failed_by_build(job)
    if build.job_id is None or not (tells_why and in_time):
        return None
    return JobRef(job.workspace_id, build.job_id)


def _failed_by_build(job: JobRow) -> bool:
    """Tell whether a run never started because its build had failed, perhaps long before."""
    error = stored_json(job.error) or {}
    return job.started_at is None and error.get("code") == BUILD_FAILED
