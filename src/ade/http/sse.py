"""Server-sent events: a response that holds a place among the open streams."""

from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ade.http.auth import Authorization
from ade.http.fair_share import FairShare, Shares
from ade.settings import Settings
from ade.telemetry import metrics

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
HEARTBEAT = ": alive\n\n"
STREAMS_MAX = 1000
NEVER_STORED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event_streams(settings: Settings) -> FairShare:
    """Share the places for open streams among keys and workspaces."""
    shares = Shares(STREAMS_MAX, settings.streams_per_workspace, settings.streams_per_key)
    return FairShare("event streams", shares)


class HeldStream(StreamingResponse):
    """Stream events, and give the place back at the end, also if it never begins."""

    def __init__(self, streams: FairShare, auth: Authorization, texts: AsyncIterator[str]) -> None:
        super().__init__(counted(texts), media_type=SSE, headers=NEVER_STORED)
        self._streams = streams
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream to its end."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._auth)


async def counted(texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Count a stream in the metrics while it is open."""
    metrics.stream_opened()
    try:
        async for text in texts:
            yield text
    finally:
        metrics.stream_closed()
