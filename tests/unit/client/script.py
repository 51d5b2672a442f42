"""Carry out the steps of a call without a network: replies are given, requests are kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ade.client.core.steps import (
    Call,
    Close,
    Emit,
    Now,
    Open,
    Read,
    Reply,
    Request,
    Send,
    Sleep,
    TransportFailed,
    Walk,
)

STEPS_MAX = 1000
LOST = TransportFailed("it was lost", sent=True)
UNSENT = TransportFailed("nothing listens", sent=False)


@dataclass
class Answer:
    """An answer that is read in pieces; it may be cut off after them."""

    reply: Reply
    pieces: tuple[bytes, ...] = ()
    cut: bool = False


@dataclass
class Script:
    """What a call did: its requests, its pauses, what it emitted and returned."""

    answers: list[Any]
    requests: list[Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    result: Any = None
    clock: float = 0.0


def play(call: Call[Any], *answers: Any) -> Script:
    """Run a call to its end; each request takes the next of the answers."""
    script = Script(list(answers))
    walk = Walk(call)
    reading: Answer | None = None
    for _ in range(STEPS_MAX):
        match walk.next():
            case None:
                script.result = walk.result
                assert script.answers == [], "it did not use all answers"
                return script
            case Send(request) | Open(request):
                script.requests.append(request)
                answer = script.answers.pop(0)
                if isinstance(answer, TransportFailed):
                    walk.fail(answer)
                    continue
                reading = answer if isinstance(answer, Answer) else Answer(answer)
                reading = Answer(reading.reply, tuple(reading.pieces), reading.cut)
                walk.note(reading.reply)
            case Read():
                assert reading is not None
                if reading.pieces:
                    walk.note(reading.pieces[0])
                    reading.pieces = reading.pieces[1:]
                elif reading.cut:
                    walk.fail(LOST)
                else:
                    walk.note(b"")
            case Sleep(seconds):
                script.pauses.append(seconds)
                script.clock += seconds
                walk.note(None)
            case Now():
                walk.note(script.clock)
            case Emit(value):
                script.emitted.append(value)
                walk.note(None)
            case Close():
                walk.note(None)
            case other:
                raise AssertionError(f"unknown step {other}")
    raise AssertionError("it does not end")


def json_reply(body: bytes | str, status: int = 200, **headers: str) -> Reply:
    """Make a reply with JSON."""
    content = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"content-type": "application/json", **named}, content)


def problem(status: int, code: str, detail: str = "no", **headers: str) -> Reply:
    """Make a reply that is a problem."""
    return json_reply(f'{{"code": "{code}", "detail": "{detail}"}}', status, **headers)


def page(*items: str, cursor: str | None = None) -> Reply:
    """Make a page of a list."""
    end = "null" if cursor is None else f'"{cursor}"'
    return json_reply(f'{{"items": [{", ".join(items)}], "next_cursor": {end}}}')


def sse(*events: tuple[int, str], whole: bool = True) -> bytes:
    """Write events of a stream."""
    text = "".join(
        f'id: {number}\nevent: {name}\ndata: {{"seq": {number}, "event": "{name}"}}\n\n'
        for number, name in events
    )
    return text.encode() if whole else text.encode()[:-3]


def stream(*pieces: bytes, cut: bool = False) -> Answer:
    """Make an answer that is a stream of events."""
    return Answer(Reply(200, {"content-type": "text/event-stream"}), tuple(pieces), cut)


def paths(requests: Iterable[Request]) -> list[str]:
    """Name the paths of requests."""
    return [one.path for one in requests]
