"""What a session allows: no more than its key, and nothing that another site asks for."""

from typing import Any

import httpx
import pytest
from tests.api.browser import SESSION, csrf_of, signed_in
from tests.api.server import JOBS, KEY, Server, echo, problem
from tests.api.test_auth import ROLES, ROUTES, WS, ask, key_for

from ade.clock import ManualClock
from ade.http.auth import KEY_CACHE_SECONDS, Authenticator

SESSIONS, KEYS = "/api/v1/sessions", "/api/v1/keys"
CREATE = {"label": "k", "role": "admin"}


async def test_a_session_says_whose_it_is(server: Server) -> None:
    browser = await signed_in(server)
    answer = await browser.get(SESSION)
    assert answer.headers["cache-control"] == "no-store"
    session = answer.json()
    assert session["user"] | {"user_id": ""} == {"user_id": "", "name": "admin", "operator": True}
    assert session["roles"] == {"default": "admin"}
    assert session["expires_at"] > session["created_at"]
    me = (await browser.get("/api/v1/me")).json()
    assert me["session_id"] == session["session_id"]
    assert [workspace["slug"] for workspace in me["workspaces"]] == ["default"]
    by_key = (await server.http.get("/api/v1/me")).json()
    assert by_key == me | {"session_id": None}
    problem(await server.http.get(SESSION), 404, "not_found")


async def test_a_session_has_the_rights_of_its_key(server: Server) -> None:
    """Walk all routes: a session is answered as its key is."""
    job = (await server.submit())["job_id"]
    lane_job = (await server.submit(target_id="t"))["job_id"]
    for role in ROLES:
        key = await key_for(server, role)
        browser, client = await signed_in(server, key), server.client(key)
        for route in ROUTES:
            needed, method, path, _ = route
            may = needed != "operator" and ROLES.index(role) >= ROLES.index(needed)
            answer = await ask(browser, route, job=job, lane_job=lane_job)
            assert (answer.status_code not in (401, 403, 404)) is may, f"{role} {method} {path}"
        for path in (KEYS, SESSION, "/api/v1/workspaces/other"):
            expected = 200 if path == SESSION else (await client.get(path)).status_code
            assert (await browser.get(path)).status_code == expected


async def test_a_session_of_a_workspaces_key_works_in_no_other(server: Server) -> None:
    await server.http.post("/api/v1/workspaces", json={"slug": "other", "name": "Other"})
    made = (await server.http.post(WS + "/keys", json=CREATE)).json()
    browser = await signed_in(server, made["key"])
    assert (await browser.get(JOBS)).status_code == 200
    problem(await browser.get("/api/v1/workspaces/other/jobs"), 404, "not_found")
    assert (await browser.get(SESSION)).json()["roles"] == {"default": "admin"}
    # The key is that of an operator, but for a workspace: its session makes no operators' keys.
    problem(await browser.post(KEYS, json={"label": "k"}), 403, "forbidden")
    created = (await browser.post(WS + "/keys", json=CREATE)).json()["key"]
    problem(await server.client(created).get(KEYS), 403, "forbidden")


async def test_a_role_that_is_taken_is_taken_from_the_session(server: Server) -> None:
    browser = await signed_in(server, await key_for(server, "editor"))
    assert (await browser.post(JOBS, json=echo(7))).status_code == 202
    await server.http.post(WS + "/members", json={"name": "a editor", "role": "viewer"})
    problem(await browser.post(JOBS, json=echo(8)), 403, "forbidden")


# --- CSRF -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "https://ade"},  # red before: the scheme was not compared
        {"Origin": "http://ade:81"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://ade.evil.example"},
        {"Origin": "http://ade@evil.example"},
        {"Origin": "http://[broken"},
        {"Origin": "http://ade:port"},
        {"Origin": "http://ade", "Sec-Fetch-Site": "cross-site"},
        {"Referer": "https://evil.example/?http://ade/"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", [JOBS, SESSIONS])  # the fast path, and FastAPI's
async def test_another_sites_page_is_refused(
    standing: Server, headers: dict[str, str], path: str
) -> None:
    browser = await signed_in(standing)
    if "Origin" not in headers:
        del browser.headers["Origin"]
    method = "POST" if path == JOBS else "DELETE"
    answer = await browser.request(method, path, headers=headers)
    problem(answer, 403, "cross_site_request")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://ade"},
        {"Origin": "http://ade:80", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "HTTP://ADE"},
        {"Referer": "http://ade/login?next=/"},
        {"Sec-Fetch-Site": "none"},
    ],
)
async def test_the_servers_own_page_is_let_in(standing: Server, headers: dict[str, str]) -> None:
    browser = await signed_in(standing)
    del browser.headers["Origin"]
    answer = await browser.post(JOBS, json=echo(str(headers)), headers=headers)
    assert answer.status_code == 202


async def test_a_change_needs_the_csrf_token(server: Server) -> None:
    browser, other = await signed_in(server), await signed_in(server)
    own = browser.headers.pop("X-CSRF-Token")
    wrong = ["", "wrong", "é", own[:-1], own + "=", await csrf_of(other)]
    for token in wrong:
        headers = {"X-CSRF-Token": token.encode("latin-1")}
        for method, path in (("POST", JOBS), ("DELETE", SESSIONS), ("POST", WS + "/keys")):
            answer = await browser.request(method, path, headers=headers)  # type: ignore[arg-type]
            problem(answer, 403, "csrf_token_invalid")
    problem(await browser.post(JOBS, json=echo()), 403, "csrf_token_invalid")
    assert (await browser.get(JOBS)).status_code == 200
    answer = await browser.post(JOBS, json=echo(), headers={"X-CSRF-Token": own})
    assert answer.status_code == 202
    assert browser.cookies["ade_session"] not in own


async def test_a_key_needs_no_csrf_token_and_no_origin(server: Server) -> None:
    browser = await signed_in(server)
    headers = {"Authorization": f"Bearer {KEY}", "Origin": "https://evil.example"}
    del browser.headers["X-CSRF-Token"]
    assert (await browser.post(JOBS, json=echo(), headers=headers)).status_code == 202


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "ade.example"])  # a proxy may pass Host on
async def test_behind_a_proxy_the_public_address_is_the_servers_own(serve: Any, host: str) -> None:
    server = await serve(public_url="https://ade.example")
    url = f"http://{host}"
    origin = {"Origin": "https://ade.example"}
    browser = server.client(base_url=url)
    answer = await browser.post("/login", data={"api_key": KEY}, headers=origin)
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    csrf = (await browser.get(SESSION, headers=cookie)).json()["csrf_token"]
    headers = cookie | origin | {"X-CSRF-Token": csrf}
    assert (await browser.post(JOBS, json=echo(), headers=headers)).status_code == 202
    headers["Origin"] = "http://ade.example"
    problem(await browser.post(JOBS, json=echo(), headers=headers), 403, "cross_site_request")


# --- how sessions end -----------------------------------------------------------------------------


async def test_a_session_ends_with_its_key(server: Server) -> None:
    made = (await server.http.post(WS + "/keys", json={"label": "k"})).json()
    browser = await signed_in(server, made["key"])
    await server.http.delete(f"{WS}/keys/{made['key_id']}")
    answer = await browser.get(JOBS)
    problem(answer, 401, "session_ended")
    assert "Basic" not in answer.headers["www-authenticate"]


async def test_other_processes_notice_within_two_seconds(server: Server) -> None:
    now = 100.0
    elsewhere = Authenticator(server.directory, lambda: now)
    browser = await signed_in(server)
    token = browser.cookies["ade_session"]
    await elsewhere.principal_of_session(token)
    assert (await browser.delete(SESSIONS)).status_code == 204
    problem(await browser.get(JOBS), 401, "session_ended")
    now += KEY_CACHE_SECONDS - 0.01
    await elsewhere.principal_of_session(token)
    now += 0.02
    with pytest.raises(Exception, match="has ended"):
        await elsewhere.principal_of_session(token)


async def test_a_session_slides_while_it_is_used_and_then_expires(serve: Any) -> None:
    server: Server = await serve(session_idle_minutes=10, session_max_hours=1)
    clock = server.kernel.store.clock = ManualClock()
    browser = await signed_in(server)
    authenticator = server.app.state.context.authenticator
    last = (await browser.get(SESSION)).json()["expires_at"]
    for _ in range(7):
        clock.advance(8 * 60)
        authenticator.forget()
        answer = await browser.get(SESSION)
        assert answer.status_code == 200
        assert answer.json()["expires_at"] > last
        last = answer.json()["expires_at"]
    clock.advance(4 * 60)  # an hour is over, however busy it was
    authenticator.forget()
    problem(await browser.get(SESSION), 401, "session_ended")
    browser = await signed_in(server)
    clock.advance(10 * 60)
    authenticator.forget()
    problem(await browser.get(SESSION), 401, "session_ended")


async def test_sessions_are_listed_and_ended(server: Server) -> None:
    browser, other = await signed_in(server), await signed_in(server)
    listed = (await browser.get(SESSIONS)).json()["items"]
    assert [one["current"] for one in listed].count(True) == 1
    assert len(listed) == 2
    assert {one["client"] for one in listed} == {f"python-httpx/{httpx.__version__}"}
    assert "token" not in str(listed)
    assert "digest" not in str(listed)
    [its] = [one["session_id"] for one in listed if not one["current"]]
    assert (await browser.delete(f"{SESSIONS}/{its}")).status_code == 204
    problem(await other.get(JOBS), 401, "session_ended")
    problem(await browser.delete(f"{SESSIONS}/{its}"), 404, "not_found")
    problem(await browser.delete(f"{SESSIONS}/x"), 404, "not_found")
    assert len((await server.http.get(SESSIONS)).json()["items"]) == 1


async def test_only_an_operator_sees_and_ends_the_sessions_of_others(server: Server) -> None:
    """The key is of the same user, the operator, and may still end only what began with it."""
    made = (await server.http.post(WS + "/keys", json={"label": "ci", "role": "viewer"})).json()
    operator, viewer = await signed_in(server), await signed_in(server, made["key"])
    listed = (await viewer.get(SESSIONS)).json()["items"]
    assert [one["key_id"] for one in listed] == [made["key_id"]]
    operators = (await operator.get(SESSION)).json()["session_id"]
    problem(await viewer.delete(f"{SESSIONS}/{operators}"), 404, "not_found")
    assert (await viewer.delete(SESSIONS)).status_code == 204
    assert (await viewer.get(JOBS)).status_code == 401
    assert (await operator.get(JOBS)).status_code == 200


async def test_signing_in_with_one_key_drives_out_no_session_of_another(server: Server) -> None:
    made = (await server.http.post(WS + "/keys", json={"label": "ci", "role": "viewer"})).json()
    operator = await signed_in(server)
    for _ in range(25):
        await server.client().post("/login", data={"api_key": made["key"]})
    assert (await operator.get(JOBS)).status_code == 200
    assert len((await operator.get(SESSIONS)).json()["items"]) == 21


# --- operators' keys ------------------------------------------------------------------------------


async def test_the_first_key_can_be_listed_and_revoked(server: Server) -> None:
    """Red before: no route knew it."""
    [first] = (await server.http.get(KEYS)).json()["items"]
    assert (first["label"], first["role"], first["user_name"]) == ("first key", None, "admin")
    refused = await server.http.delete(f"{KEYS}/{first['key_id']}")
    assert "force=true" in problem(refused, 409, "conflict")["detail"]
    made = (await server.http.post(KEYS, json={"label": "second"})).json()
    browser = await signed_in(server)
    revoked = await server.http.delete(f"{KEYS}/{first['key_id']}")
    assert revoked.json()["revoked_at"] is not None
    problem(await server.http.get(JOBS), 401, "unauthenticated")
    problem(await browser.get(JOBS), 401, "session_ended")
    second = server.client(made["key"])
    assert len((await second.get(KEYS)).json()["items"]) == 2
    forced = await second.delete(f"{KEYS}/{made['key_id']}", params={"force": True})
    assert forced.status_code == 200
    problem(await second.get(JOBS), 401, "unauthenticated")


@pytest.mark.parametrize("role", ROLES)
async def test_operators_keys_are_for_operators(server: Server, role: str) -> None:
    client = server.client(await key_for(server, role))
    for method, path in (("GET", KEYS), ("POST", KEYS), ("DELETE", f"{KEYS}/x")):
        problem(await client.request(method, path), 403, "forbidden")
        problem(await server.client().request(method, path), 401, "unauthenticated")
