"""Signed links name the server as its clients know it, whatever a request claims."""

from typing import Any

import pytest
from tests.api.conftest import Serve
from tests.api.server import Server
from tests.api.test_auth import kept_artifact

from ade.http.client_address import Networks
from ade.http.public_address import PublicAddress
from ade.http.session_cookie import SessionCookie

PROXY = "10.0.0.1"
FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "ade.example"}


def scope(headers: dict[str, str], client: str = "192.0.2.7", **more: Any) -> dict[str, Any]:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return {"scheme": "http", "headers": raw, "client": (client, 1), "server": ("::1", 80), **more}


def address(headers: dict[str, str], public_url: str | None = None, **more: Any) -> str:
    return PublicAddress(public_url, Networks([PROXY])).of(scope(headers, **more))


async def link_of(server: Server, **headers: str) -> str:
    artifact_id = await kept_artifact(server, b"hello")
    answer = await server.http.get(f"/api/v1/artifacts/{artifact_id}/url", headers=headers)
    url = answer.json()["url"]
    assert (await server.client().get(url.partition("example")[2] or url)).content == b"hello"
    return str(url)


async def test_a_signed_link_starts_with_the_public_url(serve: Serve) -> None:
    server = await serve(public_url="https://ade.example/")
    link = await link_of(server, Host="attacker.example")
    assert link.startswith("https://ade.example/api/v1/artifacts/")


async def test_proxy_headers_of_a_stranger_do_not_change_a_link(server: Server) -> None:
    assert (await link_of(server, **FORWARDED)).startswith("http://ade/api/v1/")


async def test_proxy_headers_of_a_trusted_proxy_are_used(serve: Serve) -> None:
    server = await serve(trusted_proxies=("127.0.0.1",))
    assert (await link_of(server, **FORWARDED)).startswith("https://ade.example/api/v1/")


def test_the_cookie_of_a_session_follows_the_same_rule_as_links() -> None:
    cookie = SessionCookie(PublicAddress(None, Networks([PROXY])))
    behind = scope({"Host": "ade.example", **FORWARDED}, client=PROXY)
    assert cookie.is_secure(behind)
    assert cookie.origins(behind) == {"https://ade.example"}
    claimed = scope({"Host": "ade.example", **FORWARDED})
    assert not cookie.is_secure(claimed)
    assert cookie.origins(claimed) == {"http://ade.example"}


def test_the_nearest_proxy_has_the_last_word() -> None:
    headers = {"Host": "inner", "X-Forwarded-Proto": "http, https", "X-Forwarded-Host": "bad, good"}
    assert address(headers, client=PROXY) == "https://good"
    assert address(headers) == "http://inner"


def test_a_connection_with_tls_gives_https() -> None:
    assert address({"Host": "ade.example:8443"}, scheme="https") == "https://ade.example:8443"


@pytest.mark.parametrize("host", ["", "a b", "x/../y", "user@host", "a\\b", "-", "h:port", "a?b"])
def test_what_is_not_a_host_is_replaced_by_the_listening_address(host: str) -> None:
    assert address({"Host": host}) == "http://[::1]:80"
    assert address({"Host": "ok", "X-Forwarded-Host": host}, client=PROXY) == "http://ok"


def test_only_http_and_https_are_schemes() -> None:
    assert address({"Host": "a", "X-Forwarded-Proto": "javascript"}, client=PROXY) == "http://a"
