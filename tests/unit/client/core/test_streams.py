"""Streams and downloads come whole, once and in order, wherever they are cut."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.script import (
    LOST,
    Answer,
    json_reply,
    page,
    paths,
    play,
    problem,
    sse,
    stream,
)

from ade.client import errors
from ade.client.core.downloads import download
from ade.client.core.follow import follow
from ade.client.core.pages import every
from ade.client.core.retry import RetryPolicy
from ade.client.core.sse import EVENT_BYTES_MAX, EventTooLarge, SseParser
from ade.client.core.steps import Reply
from ade.client.core.waiting import until_ended

POLICY = RetryPolicy()
DONE = json_reply('{"status": "succeeded"}')
RUNNING = json_reply('{"status": "running", "job_id": "j"}')
END = (3, "job.succeeded")


# --- the parser -----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 7), max_size=60), st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_are_the_same_however_they_are_cut(sizes: list[int], line_end: str) -> None:
    text = ": beat\n\nid: 1\nevent: a\ndata: ä\ndata: two\n\nid: 2\ndata:x\n\ndata: kept\n\n"
    sent = text.replace("\n", line_end).encode()
    parser, found, at = SseParser(), [], 0
    for size in sizes:
        found += list(parser.feed(sent[at : at + size]))
        at += size
    # A last CR may be half of a CRLF; the next byte tells.
    found += list(parser.feed(sent[at:] + b": \n"))
    assert [(one.id, one.event, one.data) for one in found] == [
        ("1", "a", "ä\ntwo"),
        ("2", "message", "x"),
        ("2", "message", "kept"),
    ]


def test_an_event_has_a_limit() -> None:
    parser = SseParser()
    list(parser.feed(b"data: " + b"x" * EVENT_BYTES_MAX + b"\n"))
    with pytest.raises(EventTooLarge):
        list(parser.feed(b"data: and more"))


# --- following ------------------------------------------------------------------------------------


def test_a_stream_that_is_cut_is_resumed_after_the_last_whole_event() -> None:
    script = play(
        follow("/j", "events", POLICY),
        stream(sse((1, "a")), sse((2, "b"), whole=False), cut=True),
        stream(sse((2, "b"), END)),
    )
    assert [one["seq"] for one in script.emitted] == [1, 2, 3]
    assert [one.headers.get("Last-Event-ID") for one in script.requests] == [None, "1"]


def test_a_stream_that_ends_early_is_not_believed() -> None:
    script = play(
        follow("/j", "events", POLICY),
        stream(sse((1, "a"))),
        RUNNING,
        stream(sse((2, "b"), END)),
    )
    assert [one["seq"] for one in script.emitted] == [1, 2, 3]
    assert paths(script.requests) == ["/j/events", "/j", "/j/events"]


def test_what_was_written_between_the_end_of_the_stream_and_of_the_job_is_read() -> None:
    log = stream(sse((1, "log")))
    script = play(follow("/j", "logs", POLICY), log, DONE, stream(sse((2, "log"))), DONE, stream())
    assert [one["seq"] for one in script.emitted] == [1, 2]


def test_a_stream_is_refused_for_good() -> None:
    with pytest.raises(errors.NotFound):
        play(follow("/j", "events", POLICY), problem(404, "not_found"))


def test_progress_is_a_new_beginning() -> None:
    cuts = [stream(sse((number, "a")), cut=True) for number in range(1, 20)]
    script = play(follow("/j", "events", POLICY), *cuts, stream(sse((20, "job.failed"))))
    assert len(script.emitted) == 20


def test_a_wait_ends_with_the_job() -> None:
    script = play(until_ended("/r", "/j", POLICY, None), RUNNING, stream(sse(END)), DONE)
    assert script.result["status"] == "succeeded"


def test_a_wait_goes_on_without_streams() -> None:
    away = problem(503, "unavailable", retry_after="2")
    script = play(until_ended("/r", "/j", POLICY, None), RUNNING, away, RUNNING, LOST, DONE)
    assert script.result["status"] == "succeeded"
    assert script.pauses[0] == 2


def test_a_wait_has_an_end() -> None:
    with pytest.raises(errors.WaitTimedOut) as late:
        play(until_ended("/b", None, POLICY, 1.0), *[RUNNING] * 5)
    assert (late.value.job_id, late.value.status) == ("j", "running")


# --- downloads ------------------------------------------------------------------------------------

CONTENT = b"0123456789"
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
TAG = f'"{DIGEST}"'


def body(*pieces: bytes, cut: bool = False, status: int = 200, tag: str = TAG) -> Answer:
    """Make an answer with bytes of a file."""
    return Answer(Reply(status, {"etag": tag} if tag else {}), pieces, cut)


def test_a_download_goes_on_where_it_was_cut() -> None:
    script = play(download("/f", POLICY), body(b"0123", cut=True), body(b"456789", status=206))
    assert b"".join(script.emitted) == CONTENT
    headers = script.requests[1].headers
    assert (headers["Range"], headers["If-Range"]) == ("bytes=4-", TAG)


def test_other_bytes_are_not_accepted() -> None:
    with pytest.raises(errors.DigestMismatch):
        play(download("/f", POLICY), body(b"012345678X"))
    with pytest.raises(errors.DigestMismatch):
        play(download("/f", POLICY, DIGEST), body(b"short", tag=""))


def test_two_states_of_a_file_are_not_mixed() -> None:
    with pytest.raises(errors.DigestMismatch, match="changed"):
        play(download("/f", POLICY), body(b"0123", cut=True), body(b"another", tag='"x"'))


def test_a_file_without_a_tag_is_not_resumed() -> None:
    with pytest.raises(errors.ServerUnreachable):
        play(download("/f", POLICY), body(b"0123", cut=True, tag=""))


# --- lists ----------------------------------------------------------------------------------------


def test_a_list_is_read_to_its_end_or_its_limit() -> None:
    script = play(every("/l", POLICY, dict), page('{"a": 1}', cursor="c"), page('{"a": 2}'))
    assert [one["a"] for one in script.emitted] == [1, 2]
    assert ("cursor", "c") in script.requests[1].query
    limited = play(every("/l", POLICY, dict, limit=1), page('{"a": 1}', '{"a": 2}', cursor="c"))
    assert len(limited.emitted) == 1
    assert play(every("/l", POLICY, dict, limit=0)).emitted == []
