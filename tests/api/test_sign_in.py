"""Signing in and out in a browser: one-time links, the form, the cookie."""

import hashlib
import re
from base64 import b64encode
from typing import Any

import httpx
import pytest
from tests.api.browser import SESSION, cookie_of, csrf_of, fields, signed_in
from tests.api.server import JOBS, KEY, Server, problem

from ade.http.routes.login import local_path
from ade.store.rows import LinkState

OWN = {"Origin": "http://ade"}
TLS = "https://ade.example"


def link(server: Server) -> str:
    return server.directory.user_sessions().make_link(600)


def shown(page: httpx.Response, status: int) -> str:
    """Check that an answer is a page that nothing can be loaded into, and return its text."""
    assert page.status_code == status, page.text
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "strict-origin"
    assert page.headers["x-frame-options"] == "DENY"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    [style] = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    assert f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in policy
    assert not re.search(r"<script|style=|\bsrc=|https?://", page.text)
    return page.text


# --- one-time links -------------------------------------------------------------------------------


async def test_a_link_is_traded_for_a_session_once(server: Server) -> None:
    token = link(server)
    browser = server.client()
    for _ in range(2):  # previews of links fetch them too
        page = await browser.get("/", params={"token": token})
        assert "signs this browser in once" in shown(page, 200)
        assert "set-cookie" not in page.headers
    answer = await browser.post("/login", data=fields(page), headers=OWN)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    assert answer.headers["cache-control"] == "no-store"
    assert (await browser.get(JOBS)).status_code == 200
    again = server.client()
    assert "has been used" in shown(await again.get("/", params={"token": token}), 401)
    refused = await again.post("/login", data={"token": token}, headers=OWN)
    assert "ade link" in shown(refused, 401)
    assert "set-cookie" not in refused.headers


async def test_the_api_key_in_a_link_is_not_taken(server: Server) -> None:
    """Red before: the link held the operator's API key, and the cookie was the key."""
    answer = await server.client().get("/", params={"token": KEY})
    assert "not valid" in shown(answer, 401)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("token", ["", "wrong", "w\0\r\nx", "é", '"><b>', "x" * 256])
async def test_a_wrong_link_leads_to_the_form(standing: Server, token: str) -> None:
    page = await standing.client().get("/", params={"token": token})
    assert 'name="api_key"' in shown(page, 401)
    refused = await standing.client().post("/login", data={"token": token}, headers=OWN)
    assert 'name="api_key"' in shown(refused, 401)


async def test_a_token_that_is_too_long_is_refused(standing: Server) -> None:
    problem(await standing.client().get("/?token=" + "x" * 257), 422, "validation_error")


async def test_a_link_is_void_when_its_key_is_revoked(server: Server) -> None:
    token = link(server)
    [first] = await server.directory.list_operator_keys()
    await server.directory.revoke_operator_key(first.id, force=True)
    assert await server.directory.user_sessions().link_state(token) is LinkState.UNKNOWN


async def test_without_a_token_the_server_says_what_it_is(standing: Server) -> None:
    assert (await standing.client().get("/")).json()["name"] == "ade"


# --- the form -------------------------------------------------------------------------------------


async def test_the_form_takes_a_key(server: Server) -> None:
    browser = server.client()
    page = await browser.get("/login", params={"next": "/default/jobs?status=failed"})
    assert '<label for="api_key">' in shown(page, 200)
    answer = await browser.post("/login", data=fields(page) | {"api_key": f" {KEY}\n"}, headers=OWN)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/default/jobs?status=failed"
    assert KEY not in str(answer.headers)
    page = await browser.get("/login")
    assert "Signed in as admin" in shown(page, 200)


@pytest.mark.parametrize("key", ["", "wrong", "é\0", "ade_" + "x" * 5000])
async def test_a_wrong_key_shows_the_form_again(standing: Server, key: str) -> None:
    data = {"api_key": key, "next": "/x"}
    page = await standing.client().post("/login", data=data, headers=OWN)
    text = shown(page, 401)
    assert 'role="alert"' in text
    assert fields(page)["next"] == "/x"
    assert "set-cookie" not in page.headers
    assert not key or key not in text


async def test_what_is_not_a_form_is_refused(standing: Server) -> None:
    client = standing.client()
    problem(await client.post("/login", json={"api_key": KEY}), 415, "unsupported_media_type")
    problem(await client.post("/login", data={"a": "x" * 70_000}), 413, "payload_too_large")
    many = {f"field{number}": "1" for number in range(30)}
    problem(await client.post("/login", data=many), 422, "validation_error")


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "evil",
        "",
        "/é",
        "/" + "x" * 2000,
    ],
)
async def test_nothing_leads_to_another_site(standing: Server, path: str) -> None:
    assert local_path(path) == "/"
    browser = standing.client()
    data = {"api_key": KEY, "next": path}
    answer = await browser.post("/login", data=data, headers=OWN)
    assert answer.headers["location"] == "/"
    page = await browser.get("/login", params={"next": path})
    assert '<a href="/">' in page.text


async def test_a_path_cannot_break_out_of_the_page(standing: Server) -> None:
    page = await standing.client().get("/login", params={"next": '/"><b>x'})
    assert "<b>" not in page.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://ade"},
        {"Origin": "http://ade:8000"},
        {"Referer": "https://evil.example/page"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://ade"},
    ],
)
async def test_another_site_can_sign_nobody_in_or_out(
    standing: Server, headers: dict[str, str]
) -> None:
    for path in ("/login", "/logout"):
        answer = await standing.client().post(path, data={"api_key": KEY}, headers=headers)
        problem(answer, 403, "cross_site_request")
        assert "set-cookie" not in answer.headers


# --- the cookie -----------------------------------------------------------------------------------


async def test_the_cookie_is_not_the_key(server: Server) -> None:
    """Red before: the cookie held the operator's API key for 30 days."""
    answer = await server.client().post("/login", data={"api_key": KEY}, headers=OWN)
    name, value, attributes = cookie_of(answer)
    assert name == "ade_session"
    assert value.startswith("ades_")
    assert KEY not in value
    wanted = {"httponly", "samesite=lax", "path=/", f"max-age={168 * 3600}"}
    assert attributes == wanted
    as_key = server.client(value)
    problem(await as_key.get(JOBS), 401, "unauthenticated")


async def test_an_api_key_in_the_cookie_is_refused(standing: Server) -> None:
    """Red before: it was accepted."""
    headers = {"Cookie": f"ade_session={KEY}"}
    problem(await standing.client().get(JOBS, headers=headers), 401, "session_ended")


async def test_a_token_passes_for_nothing_else_while_it_is_cached(server: Server) -> None:
    browser = await signed_in(server)
    token = browser.cookies["ade_session"]
    assert (await browser.get(JOBS)).status_code == 200
    problem(await server.client(token).get(JOBS), 401, "unauthenticated")
    assert (await server.http.get(JOBS)).status_code == 200
    headers = {"Cookie": f"ade_session={KEY}"}
    problem(await server.client().get(JOBS, headers=headers), 401, "session_ended")


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, TLS),
        ({"public_url": TLS}, TLS),
        ({"public_url": TLS + "/"}, "http://127.0.0.1:8000"),
        ({"public_url": "https://ADE.example:443"}, "http://10.0.0.1"),
    ],
)
async def test_the_cookie_is_secure_behind_tls(serve: Any, settings: Any, url: str) -> None:
    """Red before with a proxy: only the scheme of the connection to ADE counted."""
    server = await serve(**settings)
    browser = server.client(base_url=url)
    origin = {"Origin": TLS if settings else url}
    answer = await browser.post("/login", data={"api_key": KEY}, headers=origin)
    name, value, attributes = cookie_of(answer)
    assert name == "__Host-ade_session"
    assert {"secure", "httponly", "path=/", "samesite=lax"} <= attributes
    assert not [one for one in attributes if one.startswith("domain")]
    headers = {"Cookie": f"{name}={value}"}
    assert (await server.client(base_url=url).get(JOBS, headers=headers)).status_code == 200
    # Another host of the domain can plant a cookie without the prefix: it is not read.
    headers = {"Cookie": f"ade_session={value}"}
    answer = await server.client(base_url=url).get(JOBS, headers=headers)
    problem(answer, 401, "unauthenticated")


async def test_a_proxy_with_tls_that_nobody_told_ade_of_is_named(server: Server) -> None:
    browser = server.client(base_url="http://ade.example")
    answer = await browser.post("/login", data={"api_key": KEY}, headers={"Origin": TLS})
    assert "ADE_PUBLIC_URL" in problem(answer, 403, "cross_site_request")["detail"]


async def test_signing_in_again_makes_another_session(server: Server) -> None:
    browser = await signed_in(server)
    before = browser.cookies["ade_session"]
    assert (await browser.post("/login", data={"api_key": KEY})).status_code == 303
    assert browser.cookies["ade_session"] != before
    answer = await server.client().get(JOBS, headers={"Cookie": f"ade_session={before}"})
    problem(answer, 401, "session_ended")


async def test_the_name_of_a_browser_is_shortened_and_printable(server: Server) -> None:
    headers = OWN | {"User-Agent": b"Fire\x1b[31mfox \xff" + b"x" * 5000}
    answer = await server.client().post("/login", data={"api_key": KEY}, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 303
    [session] = (await server.http.get("/api/v1/sessions")).json()["items"]
    assert session["client"] == ("Fire[31mfox ÿ" + "x" * 120)[:120]


# --- signing out ----------------------------------------------------------------------------------


async def test_signing_out_ends_the_session(server: Server) -> None:
    browser = await signed_in(server)
    token = browser.cookies["ade_session"]
    page = await browser.get("/login")
    del browser.headers["X-CSRF-Token"]
    answer = await browser.post("/logout", data=fields(page))
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login"
    assert cookie_of(answer)[2] >= {"max-age=0", "path=/", "httponly"}
    answer = await server.client().get(JOBS, headers={"Cookie": f"ade_session={token}"})
    problem(answer, 401, "session_ended")


async def test_signing_out_needs_the_csrf_token(server: Server) -> None:
    browser = await signed_in(server)
    token = browser.headers.pop("X-CSRF-Token")
    for data in ({}, {"csrf_token": "wrong"}, {"csrf_token": token + "x"}):
        problem(await browser.post("/logout", data=data), 403, "csrf_token_invalid")
    assert (await browser.get(SESSION)).status_code == 200
    assert (await browser.post("/logout", headers={"X-CSRF-Token": token})).status_code == 303


async def test_signing_out_everywhere(server: Server) -> None:
    here, there = await signed_in(server), await signed_in(server)
    data = {"csrf_token": await csrf_of(here), "everywhere": "1"}
    assert (await here.post("/logout", data=data)).status_code == 303
    for browser in (here, there):
        assert (await browser.get(SESSION)).status_code == 401
    assert (await server.http.get(JOBS)).status_code == 200


async def test_signing_out_without_a_session_clears_the_cookie(standing: Server) -> None:
    for headers in ({}, {"Cookie": "ade_session=over"}):
        answer = await standing.client().post("/logout", headers=OWN | headers)
        assert answer.status_code == 303
        assert "max-age=0" in cookie_of(answer)[2]
