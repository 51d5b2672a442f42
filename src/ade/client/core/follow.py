"""Follow a stream of a job to its end, and resume it wherever it is cut.

The last id that arrived with a whole event is sent back as `Last-Event-ID`, so that no event is
lost and none is seen twice. A stream that ends is not believed at once, because a server that is
shut down ends its streams too: the job is read, and while it has not ended the stream is resumed.
After its end the stream is opened once more, for what was written between the two.

| what happens | what is done |
| --- | --- |
| the connection is lost, or nothing comes for `SILENCE_SECONDS` | resume after a pause |
| 429 or 5xx | wait as for any request, then resume |
| another error | raise it |
| the stream ends with an event that ends the job | done |
| the stream ends, and the job has not ended | resume |
| the stream ends, and the job has ended | resume once; done when nothing new comes |
"""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from ade.client.core.exchange import call_json, request_of, unreachable
from ade.client.core.problems import error_of, not_ade, retry_after_seconds
from ade.client.core.retry import Refusal, Retrying, RetryPolicy
from ade.client.core.sse import EventTooLarge, ServerSentEvent, SseParser
from ade.client.core.steps import (
    Call,
    Close,
    Emit,
    Now,
    Open,
    Query,
    Read,
    Reply,
    Request,
    Sleep,
    TransportFailed,
)
from ade.client.errors import ClientError

SSE = "text/event-stream"
# The server sends a heartbeat every 15 s.
SILENCE_SECONDS = 45.0
ENDED = frozenset({"succeeded", "failed", "timed_out", "cancelled"})
ENDS_JOB = frozenset(f"job.{status}" for status in ENDED)


def follow(
    job_path: str,
    stream: str,
    policy: RetryPolicy,
    *,
    after: str = "",
    query: Query = (),
    make: Callable[[Mapping[str, Any]], Any] = dict,
) -> Call[None]:
    """Emit every event of a job's stream once, in order, until the job has ended."""
    place = Place(after)
    retrying = Retrying(policy, repeatable=True, random=random.random)
    was_ended = False
    while True:
        before = place.last
        request = stream_request(f"{job_path}/{stream}", query, place.last, SILENCE_SECONDS)
        try:
            reply: Reply = yield Open(request)
            error = yield from _copy(request, reply, place, make)
        except TransportFailed as failed:
            refusal, error = Refusal(sent=failed.sent), unreachable(failed)
        else:
            if error is None:
                if place.has_ended or (was_ended and place.last == before):
                    return
                job = yield from call_json(request_of("GET", job_path), policy)
                was_ended = job.get("status") in ENDED
                if was_ended or place.last != before:
                    continue
            refusal = Refusal(reply.status if error else 503, retry_after_seconds(reply))
        if place.last != before:
            retrying.made_progress()
        pause = retrying.after(refusal, (yield Now()))
        if pause is None:
            raise error or unreachable(TransportFailed("its streams end too early", sent=True))
        yield Sleep(pause)


class Place:
    """Where a stream was read up to."""

    def __init__(self, last: str) -> None:
        self.last = last
        self.has_ended = False

    def note(self, event: ServerSentEvent) -> None:
        """Remember an event that was seen whole."""
        self.last = event.id or self.last
        self.has_ended = event.event in ENDS_JOB


def _copy(
    request: Request, reply: Reply, place: Place, make: Callable[[Mapping[str, Any]], Any]
) -> Call[ClientError | None]:
    """Emit the events of an open answer to its end; return the error if it is one."""
    if reply.status >= 400:
        return error_of(request, reply)
    if not reply.headers.get("content-type", "").startswith(SSE):
        yield Close()
        raise not_ade(request, reply)
    parser = SseParser()
    while piece := (yield Read()):
        try:
            for event in parser.feed(piece):
                data = json.loads(event.data)
                place.note(event)
                yield Emit(make({"id": event.id, **data}))
        except (EventTooLarge, ValueError, TypeError):
            yield Close()
            raise not_ade(request, reply) from None
    return None


def stream_request(path: str, query: Query, last: str, timeout_seconds: float) -> Request:
    """Ask for the events after the last one that is known."""
    resumed = {"Last-Event-ID": last} if last else {}
    return Request("GET", path, query, {"Accept": SSE, **resumed}, timeout_seconds=timeout_seconds)
