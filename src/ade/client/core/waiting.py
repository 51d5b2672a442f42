"""Wait for the end of a job: by its event stream, else by asking now and then."""

from typing import Any

from ade.client.core.exchange import call_json, request_of
from ade.client.core.follow import ENDED, SILENCE_SECONDS, Place, stream_request
from ade.client.core.problems import error_of, retry_after_seconds
from ade.client.core.retry import RetryPolicy
from ade.client.core.sse import SseParser
from ade.client.core.steps import Call, Close, Now, Open, Read, Reply, Sleep, TransportFailed
from ade.client.errors import WaitTimedOut

FIRST_LOOK_SECONDS = 0.1
LOOK_SECONDS_MAX = 5.0


def until_ended(
    path: str,
    job_path: str | None,
    policy: RetryPolicy,
    timeout_seconds: float | None,
    ended: frozenset[str] = ENDED,
) -> Call[Any]:
    """Return what is at `path` when its status is one of `ended`; raise WaitTimedOut if it is late.

    `job_path` is that of the job, whose events are followed meanwhile. Where there is none or the
    server refuses a stream, `path` is read at growing intervals.
    """
    began = yield Now()
    place = Place("")
    pause = FIRST_LOOK_SECONDS
    while True:
        found = yield from call_json(request_of("GET", path), policy)
        if found["status"] in ended:
            return found
        left = None if timeout_seconds is None else began + timeout_seconds - (yield Now())
        if left is not None and left <= 0:
            raise WaitTimedOut(
                found.get("run_id") or found.get("job_id") or path,
                found["status"],
                timeout_seconds or 0.0,
            )
        before = place.last
        asked = None
        if job_path is not None:
            asked = yield from _follow(f"{job_path}/events", place, left)
        if place.last != before:
            pause = FIRST_LOOK_SECONDS
        else:
            longest = pause if asked is None else max(pause, asked)
            yield Sleep(longest if left is None else min(longest, max(left, 0.0)))
            pause = min(LOOK_SECONDS_MAX, pause * 2)


def _follow(path: str, place: Place, left: float | None) -> Call[float | None]:
    """Read events until the stream ends, is lost or refused, or the time is up."""
    until = None if left is None else (yield Now()) + left
    silence = SILENCE_SECONDS if left is None else min(SILENCE_SECONDS, left + 0.05)
    request = stream_request(path, (), place.last, silence)
    try:
        reply: Reply = yield Open(request)
        if reply.status in (401, 403, 404):
            raise error_of(request, reply)
        if reply.status >= 400:
            return retry_after_seconds(reply)
        parser = SseParser()
        while piece := (yield Read()):
            for event in parser.feed(piece):
                place.note(event)
            if place.has_ended or (until is not None and (yield Now()) >= until):
                yield Close()
                return None
    except TransportFailed:
        pass
    return None
