"""`/logs/{id}`, `/file-logs/{id}`, `/progress/{id}`, `/result/{id}`: what jobs leave behind.

All of it was written by containers or workers: it is untrusted, and sent as plain text or JSON that
no browser runs.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ade.app.agent_views import status_body
from ade.domain.errors import InvalidRequest, NotFound, TooManyRequests
from ade.domain.events import output_topic
from ade.domain.job import TERMINAL, Status
from ade.domain.units import MIB
from ade.http.contract.context import ContractContext
from ade.http.download import SAFE
from ade.http.query import check_parameters
from ade.http.responses import json_response
from ade.http.sse import NEVER_STORED
from ade.store.rows import AgentJob, JobRef, JobRow

TEXT = "text/plain; charset=utf-8"
READ_BYTES = 256 * 1024
LOOK_SECONDS = 1.0
STREAMS_MAX = 500
RESULT_BYTES_MAX = 16 * MIB


class LogStreams:
    """Count the open streams of output, of which there is a limited number."""

    def __init__(self, streams_max: int = STREAMS_MAX) -> None:
        self._streams_max = streams_max
        self._open = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Count one while inside, or raise TooManyRequests."""
        if self._open >= self._streams_max:
            raise TooManyRequests(f"There are {self._open} open streams of output already.")
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


def job_file_routes(context: ContractContext, streams: LogStreams | None = None) -> APIRouter:
    """Make the routes."""
    router = APIRouter(tags=["jobs"])
    kernel, output = context.kernel, context.output
    counted = streams or LogStreams()

    async def find(request: Request, job_id: str) -> AgentJob:
        caller = await context.callers.caller(request.scope)
        check_parameters(request)
        return await context.job(caller, job_id)

    async def has_ended(job: JobRow) -> bool:
        ref = JobRef(job.workspace_id, job.id)
        found = await kernel.read(lambda reading: reading.read_job(ref))
        return found is None or Status(found.status) in TERMINAL

    async def followed(job: JobRow) -> AsyncIterator[bytes]:
        attempt, start = None, 0
        with kernel.subscribe(job.id, output_topic(job.id)) as news:
            while True:
                ended = await has_ended(job)  # before the last read, so that it reads all
                while (part := await output.look(job, start, READ_BYTES)) is not None:
                    if part.attempt != attempt and start:
                        start = 0  # another attempt has begun a file of its own
                    elif part.piece:
                        start += len(part.piece)
                        yield part.piece
                    else:
                        break
                    attempt = part.attempt
                if ended:
                    return
                await news.wait(LOOK_SECONDS)

    @router.get("/logs/{job_id}")
    async def follow_logs(request: Request, job_id: str) -> Response:
        """Stream the output of a job from its beginning until the job has ended."""
        job = (await find(request, job_id)).job
        await output.look(job, 0, 0)  # it raises where the answer can still say so
        return _Stream(followed(job), counted)

    @router.get("/file-logs/{job_id}")
    async def read_logs(request: Request, job_id: str) -> Response:
        """Stream the output of a job as far as it has come."""
        job = (await find(request, job_id)).job
        await output.look(job, 0, 0)
        return _Stream(output.stream(job), counted)

    @router.get("/progress/{job_id}")
    async def read_progress(request: Request, job_id: str) -> Response:
        """Show the progress that a job has written; `{}` while there is none."""
        job = (await find(request, job_id)).job
        progress = await _written(job, context.shared_folder.read_progress, job.id)
        if progress is None:
            progress = json.loads(job.progress) if job.progress else {}
        return json_response(progress)

    @router.get("/result/{job_id}")
    async def read_result(request: Request, job_id: str) -> Response:
        """Show the result that a job has left; 404 while there is none."""
        found = await find(request, job_id)
        result = await _recorded(found)
        if result is None:
            folder = context.shared_folder
            result = await _written(found.job, folder.read_result, found.job.id, RESULT_BYTES_MAX)
        if result is None:
            status = status_body(found)["status"]
            raise NotFound(f"The job has left no result; its status is {status}.")
        return json_response(result)

    async def _recorded(found: AgentJob) -> Any:
        """Return the result that was recorded with the end of the job, if its worker sent one."""
        ref = JobRef(found.job.workspace_id, found.job.id)
        stored = await kernel.read(lambda reading: reading.read_result(ref))
        outputs = json.loads(stored).get("outputs") if stored else None
        return outputs.get("result_json") if isinstance(outputs, dict) else None

    return router


async def _written(job: JobRow, read: Callable[..., Any], *arguments: Any) -> Any:
    """Read what a job has written; what is no JSON may be half written, as long as it runs."""
    try:
        return await asyncio.to_thread(read, *arguments)
    except InvalidRequest:
        if Status(job.status) in TERMINAL:
            raise
        return None


class _Stream(StreamingResponse):
    """Stream output as it is, and count the stream while it is open."""

    def __init__(self, pieces: AsyncIterator[bytes], streams: LogStreams) -> None:
        super().__init__(pieces, media_type=TEXT, headers={**SAFE, **NEVER_STORED})
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream to its end."""
        with self._streams.held():
            await super().__call__(scope, receive, send)
