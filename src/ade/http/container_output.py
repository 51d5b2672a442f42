"""The logs of containers, as `/{ws}/jobs/{id}/logs` shows them: read from a file of bytes.

A container has one stream: stdout and stderr in the order of their arrival, shown as `stdout`. A
place in it is `attempt:offset`, in bytes.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from ade.app.agent_output import AgentOutput, FileText
from ade.app.times import rfc3339
from ade.domain.output import Stream
from ade.http.schemas.results import last_lines
from ade.http.sse import HEARTBEAT, NEVER_STORED
from ade.store.rows import JobRow

TEXT = "text/plain; charset=utf-8"


class ContainerLog:
    """Show the output of one container."""

    def __init__(self, output: AgentOutput, job: JobRow, stream: Stream | None) -> None:
        self._output = output
        self._job = job
        self._is_shown = stream in (None, Stream.STDOUT)

    async def events(self, start: str) -> AsyncIterator[str]:
        """Yield server-sent events after a place until the job has ended."""
        async for text in self._output.follow(self._job, *_place(start)):
            if text is None:
                yield HEARTBEAT
            elif self._is_shown:
                shown = self._shown(text)
                yield f"id: {shown['id']}\nevent: stdout\ndata: {json.dumps(shown)}\n\n"

    async def lines(self, start: str) -> AsyncIterator[str]:
        """Yield lines of JSON with what was written after a place."""
        if self._is_shown:
            async for text in self._output.texts(self._job, *_place(start)):
                yield json.dumps(self._shown(text)) + "\n"

    async def text(self, tail: int | None, attempt: int | None) -> Response:
        """Answer with the whole output, or with its last lines."""
        if not self._is_shown:
            return PlainTextResponse("", headers=NEVER_STORED)
        if tail is not None:
            end = last_lines(await self._output.tail(self._job, attempt), tail)
            return PlainTextResponse(end, headers=NEVER_STORED)
        pieces = self._output.stream(self._job, 0, attempt)
        return StreamingResponse(pieces, media_type=TEXT, headers=NEVER_STORED)

    def _shown(self, text: FileText) -> dict[str, Any]:
        return {
            "id": f"{text.attempt}:{text.ends}",
            "seq": text.ends,
            "at": rfc3339(text.at),
            "job_id": self._job.id,
            "attempt": text.attempt,
            "stream": Stream.STDOUT.value,
            "offset": text.starts,
            "dropped_bytes": 0,
            "text": text.text,
        }


def _place(start: str) -> tuple[int, int]:
    """Read a place: an attempt, and an offset in bytes."""
    attempt, colon, offset = start.rpartition(":")
    return (int(attempt), int(offset)) if colon and attempt.isdigit() else (0, 0)
