"""Wrong keys are limited by address, and no valid key is ever refused for them."""

from typing import Any

import pytest
from tests.api.conftest import Serve
from tests.api.server import JOBS, Server, problem

from ade.domain.errors import TooManyWrongKeys
from ade.http import wrong_keys
from ade.http.client_address import Networks
from ade.http.wrong_keys import WINDOW_SECONDS, WrongKeys
from ade.telemetry import metrics


def counted() -> float:
    return metrics.REGISTRY.get_sample_value("ade_wrong_keys_total") or 0


def request_from(address: str, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    return {"client": (address, 1), "headers": headers}


def is_refused(keys: WrongKeys, address: str, *forwarded: str) -> bool:
    try:
        keys.count(request_from(address, *forwarded))
    except TooManyWrongKeys as refused:
        return 1 <= refused.retry_after_seconds <= WINDOW_SECONDS
    return False


async def test_too_many_wrong_keys_are_refused_and_a_valid_one_is_not(serve: Serve) -> None:
    server: Server = await serve(wrong_keys_per_minute=3)
    before = counted()
    for number in range(3):
        async with server.client(f"wrong-{number}") as guessing:
            problem(await guessing.get(JOBS), 401, "unauthenticated")
    async with server.client("wrong-3") as guessing:
        answer = await guessing.get(JOBS)
        problem(answer, 429, "too_many_wrong_keys")
        assert 1 <= int(answer.headers["retry-after"]) <= WINDOW_SECONDS
        problem(await guessing.post(JOBS, json={}), 429, "too_many_wrong_keys")
    assert (await server.http.get(JOBS)).status_code == 200
    async with server.client() as anonymous:  # no key is no wrong key
        problem(await anonymous.get(JOBS), 401, "unauthenticated")
    assert counted() - before == 5


def test_addresses_count_apart_and_an_ipv6_client_by_its_network() -> None:
    keys = WrongKeys(1, Networks())
    assert not is_refused(keys, "192.0.2.1")
    assert is_refused(keys, "192.0.2.1")
    assert not is_refused(keys, "192.0.2.2")
    assert not is_refused(keys, "2001:db8::1")
    assert is_refused(keys, "2001:db8::ffff:2")
    assert not is_refused(keys, "2001:db8:0:1::1")


def test_a_proxy_that_is_not_trusted_does_not_hide_a_client() -> None:
    keys = WrongKeys(1, Networks(["10.0.0.0/8"]))
    assert not is_refused(keys, "192.0.2.1", "198.51.100.1")
    assert is_refused(keys, "192.0.2.1", "198.51.100.2")  # it may write what it likes
    assert not is_refused(keys, "10.0.0.1", "203.0.113.7, 198.51.100.1, 10.0.0.2")
    assert is_refused(keys, "10.0.0.9", "203.0.113.8, 198.51.100.1:4711")
    assert not is_refused(keys, "10.0.0.9", "198.51.100.1, 203.0.113.9")


def test_the_count_begins_anew_and_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    keys = WrongKeys(1, Networks(), lambda: now)
    assert not is_refused(keys, "192.0.2.1")
    assert is_refused(keys, "192.0.2.1")
    now += WINDOW_SECONDS
    assert not is_refused(keys, "192.0.2.1")
    monkeypatch.setattr(wrong_keys, "ADDRESSES_MAX", 10)
    for number in range(50):
        is_refused(keys, f"192.0.2.{number}")
    assert len(keys._failed) == 10


async def test_the_sign_in_form_counts_wrong_keys_too(serve: Serve) -> None:
    server: Server = await serve(wrong_keys_per_minute=2)
    form = {"api_key": "not a key of this server"}
    origin = {"Origin": str(server.client().base_url).rstrip("/")}
    codes = [
        (await server.client().post("/login", data=form, headers=origin)).status_code
        for _ in range(4)
    ]
    assert codes == [401, 401, 429, 429]
