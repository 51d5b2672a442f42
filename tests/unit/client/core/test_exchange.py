"""A request is sent again where that is safe, and not elsewhere."""

import pytest
from tests.unit.client.script import LOST, UNSENT, json_reply, play, problem

from ade.client import errors
from ade.client.core.exchange import call_json, request_of, send
from ade.client.core.retry import RetryPolicy
from ade.client.core.steps import Reply

POLICY = RetryPolicy()
GET = request_of("GET", "/x")
POST = request_of("POST", "/x", json_body={})
KEYED = request_of("POST", "/x", json_body={}, headers={"Idempotency-Key": "k"})
GOOD = json_reply("{}")
BUSY = problem(429, "run_queue_full", retry_after="3")
AWAY = problem(503, "unavailable")
BROKEN = Reply(502, {"content-type": "text/html"}, b"<html>")


@pytest.mark.parametrize(
    "request_", [GET, KEYED, request_of("PUT", "/x"), request_of("DELETE", "/x")]
)
@pytest.mark.parametrize("lost", [LOST, UNSENT, AWAY, BROKEN, problem(500, "internal")])
def test_what_may_be_repeated_is(request_: object, lost: object) -> None:
    script = play(send(request_, POLICY), lost, GOOD)  # type: ignore[arg-type]
    assert script.result.status == 200
    assert len(script.requests) == 2
    assert len(script.pauses) == 1


@pytest.mark.parametrize("lost", [LOST, BROKEN, problem(500, "internal")])
def test_what_may_have_been_done_is_not_done_again(lost: object) -> None:
    with pytest.raises(errors.ClientError):
        play(send(POST, POLICY), lost)


@pytest.mark.parametrize("lost", [UNSENT, AWAY, BUSY])
def test_what_was_certainly_not_done_is_sent_again(lost: object) -> None:
    assert play(send(POST, POLICY), lost, GOOD).result.status == 200


def test_a_retry_carries_the_same_key() -> None:
    script = play(send(KEYED, POLICY), LOST, GOOD)
    assert [one.headers["Idempotency-Key"] for one in script.requests] == ["k", "k"]


def test_it_gives_up_with_what_happened_last() -> None:
    attempts = [LOST] * POLICY.attempts_max
    with pytest.raises(errors.ServerUnreachable, match="it was lost"):
        play(send(GET, POLICY), *attempts)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "validation_error", errors.InvalidRequest),
        (404, "not_found", errors.NotFound),
        (401, "unauthenticated", errors.Unauthenticated),
        (409, "lease_lost", errors.LeaseLost),
        (422, "something_new", errors.InvalidRequest),
        (418, "something_new", errors.Problem),
    ],
)
def test_a_refusal_is_final(status: int, code: str, kind: type[errors.Problem]) -> None:
    with pytest.raises(kind) as refused:
        play(send(GET, POLICY), problem(status, code, "because"))
    assert (refused.value.status, refused.value.code) == (status, code)
    assert "because" in str(refused.value)


def test_a_full_queue_is_waited_for_as_the_server_asks() -> None:
    told: list[float] = []
    policy = RetryPolicy(on_busy=told.append)
    script = play(send(POST, policy), BUSY, BUSY, GOOD)
    assert all(3 <= pause < 3.3 for pause in script.pauses)
    assert told == script.pauses


def test_a_full_queue_is_waited_for_no_longer_than_allowed() -> None:
    with pytest.raises(errors.QueueFull) as full:
        play(send(POST, RetryPolicy(busy_seconds_max=7)), BUSY, BUSY, BUSY)
    assert full.value.retry_after_seconds == 3


def test_a_patient_client_waits_for_ever() -> None:
    many = [BUSY] * 100
    script = play(send(POST, RetryPolicy(busy_seconds_max=None)), *many, GOOD)
    assert script.clock > 300


def test_a_server_that_asks_for_an_hour_is_not_obeyed() -> None:
    script = play(send(GET, RetryPolicy()), problem(503, "unavailable", retry_after="3600"), GOOD)
    assert script.pauses[0] < 61


def test_the_first_of_two_requests_with_one_key_is_waited_for() -> None:
    script = play(send(KEYED, POLICY), problem(409, "idempotency_in_flight"), GOOD)
    assert script.result.status == 200


def test_what_was_deleted_by_a_lost_request_is_deleted() -> None:
    request = request_of("DELETE", "/x")
    assert play(send(request, POLICY), LOST, problem(404, "not_found")).result.status == 204
    with pytest.raises(errors.NotFound):
        play(send(request, POLICY), problem(404, "not_found"))


def test_something_else_at_the_address_is_named() -> None:
    page = Reply(200, {"content-type": "text/html"}, b"<html>hello")
    with pytest.raises(errors.NotAnAdeServer, match="text/html"):
        play(call_json(GET, POLICY), page)
    with pytest.raises(errors.NotAnAdeServer):
        play(call_json(GET, POLICY), Reply(404, {"content-type": "text/html"}, b"<html>"))


def test_a_path_that_the_server_does_not_know() -> None:
    with pytest.raises(errors.NoSuchPath, match="another version"):
        play(send(GET, POLICY), problem(404, "not_found", "There is no such path."))
