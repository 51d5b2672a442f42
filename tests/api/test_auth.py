"""Authorization: every kind of key, roles on all routes, separate workspaces."""

import base64
import time
from typing import Any

import httpx
import pytest
from tests.api.conftest import Serve
from tests.api.server import JOBS, KEY, TARGETS, Server, echo, kept_file, problem

from ade.domain.errors import Forbidden
from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.http.auth import KEY_CACHE_SECONDS, Authenticator
from ade.http.signing import Signer

WS = "/api/v1/workspaces/default"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
# What a route needs, and an order of the roles that have it.
ROLES = ("viewer", "editor", "admin")
ROUTES: list[tuple[str, str, str, Any]] = [
    ("viewer", "GET", WS, None),
    ("viewer", "GET", JOBS, None),
    ("viewer", "GET", JOBS + "/{job}", None),
    ("viewer", "GET", JOBS + "/{job}/payload", None),
    ("viewer", "GET", JOBS + "/{job}/result", None),
    ("viewer", "GET", JOBS + "/{job}/artifacts", None),
    ("viewer", "GET", JOBS + "/{job}/events", None),
    ("viewer", "GET", JOBS + "/{job}/logs", None),
    ("viewer", "GET", JOBS + "/{job}/attempts", None),
    ("viewer", "GET", TARGETS + "/t", None),
    ("viewer", "GET", TARGETS + "/t/jobs", None),
    ("editor", "POST", JOBS, echo(2)),
    ("editor", "POST", JOBS + "/batch", {"jobs": [echo(3)]}),
    ("editor", "POST", JOBS + "/{job}/cancel", None),
    ("editor", "POST", JOBS + "/{job}/interrupt", None),
    ("editor", "POST", JOBS + "/{job}/resume", None),
    ("editor", "POST", JOBS + "/{job}/retry", None),
    ("editor", "POST", TARGETS + "/t/jobs", echo(4)),
    ("editor", "POST", TARGETS + "/t/jobs/{lane_job}/interrupt", None),
    ("editor", "POST", TARGETS + "/t/jobs/{lane_job}/resume", None),
    ("editor", "POST", TARGETS + "/t/jobs/{lane_job}/resolve", {"result": 1}),
    ("editor", "POST", TARGETS + "/t/jobs/{lane_job}/clear", None),
    ("editor", "POST", TARGETS + "/t/jobs/{lane_job}/cancel", None),
    ("admin", "GET", WS + "/members", None),
    ("admin", "POST", WS + "/members", {"name": "new", "role": "viewer"}),
    ("admin", "GET", WS + "/keys", None),
    ("admin", "POST", WS + "/keys", {"label": "k"}),
    ("operator", "POST", "/api/v1/workspaces", {"slug": "more", "name": "More"}),
]


async def key_for(server: Server, role: str, ws: str = WS) -> str:
    member = await server.http.post(ws + "/members", json={"name": f"a {role}", "role": role})
    body = {"label": role, "role": role, "user_id": member.json()["user_id"]}
    made = await server.http.post(ws + "/keys", json=body)
    assert made.status_code == 201, made.text
    return made.json()["key"]


async def ask(client: httpx.AsyncClient, route: tuple[str, str, str, Any], **ids: str) -> Any:
    _, method, path, body = route
    return await client.request(method, path.format(**ids), json=body)


async def test_every_route_asks_for_its_role(serve: Serve) -> None:
    server = await serve(wrong_keys_per_minute=1000)
    """Walk the whole matrix: each route with no key, a wrong one, and a key of each role."""
    job = (await server.submit())["job_id"]
    lane_job = (await server.submit(target_id="t"))["job_id"]
    ids = {"job": job, "lane_job": lane_job}
    clients = {role: server.client(await key_for(server, role)) for role in ROLES}
    for route in ROUTES:
        needed, method, path, _ = route
        where = f"{method} {path}"
        answer = await ask(server.client(), route, **ids)
        problem(answer, 401, "unauthenticated")
        assert "Bearer" in answer.headers["www-authenticate"]
        problem(await ask(server.client("wrong"), route, **ids), 401, "unauthenticated")
        for role, client in clients.items():
            answer = await ask(client, route, **ids)
            may = needed != "operator" and ROLES.index(role) >= ROLES.index(needed)
            assert (answer.status_code not in (401, 403, 404)) is may, f"{role} {where}"
            if not may:
                problem(answer, 403, "forbidden")
        answer = await ask(server.http, route, **ids)
        assert answer.status_code not in (401, 403, 404), f"operator {where}"


async def test_malformed_bodies_do_not_come_before_the_key(server: Server) -> None:
    for path in (JOBS, JOBS + "/batch", TARGETS + "/t/jobs", WS + "/members", "/api/v1/workspaces"):
        answer = await server.client().post(path, content=b"{")
        problem(answer, 401, "unauthenticated")


async def test_another_workspace_is_not_there(server: Server) -> None:
    await server.http.post("/api/v1/workspaces", json={"slug": "other", "name": "Other"})
    other = server.client(await key_for(server, "admin", "/api/v1/workspaces/other"))
    job = await server.submit()
    for route in ROUTES:
        if route[2].startswith(WS):
            answer = await ask(other, route, job=job["job_id"], lane_job=job["job_id"])
            problem(answer, 404, "not_found")
    mine = f"/api/v1/workspaces/other/jobs/{job['job_id']}"
    problem(await other.get(mine), 404, "not_found")
    problem(await server.http.get(mine), 404, "not_found")
    listed = (await other.get("/api/v1/workspaces")).json()["items"]
    assert [ws["slug"] for ws in listed] == ["other"]


async def test_a_key_never_allows_more_than_its_user_may(server: Server) -> None:
    member = await server.http.post(WS + "/members", json={"name": "v", "role": "viewer"})
    body = {"label": "k", "role": "admin", "user_id": member.json()["user_id"]}
    made = (await server.http.post(WS + "/keys", json=body)).json()
    client = server.client(made["key"])
    assert (await client.get(JOBS)).status_code == 200
    problem(await client.post(JOBS, json=echo()), 403, "forbidden")


async def test_an_operators_key_for_a_workspace_is_no_operators_key(server: Server) -> None:
    made = (await server.http.post(WS + "/keys", json={"label": "k", "role": "admin"})).json()
    client = server.client(made["key"])
    assert (await client.get(WS + "/keys")).status_code == 200
    answer = await client.post("/api/v1/workspaces", json={"slug": "x", "name": "X"})
    problem(answer, 403, "forbidden")


async def _second_workspace(server: Server) -> str:
    await server.http.post("/api/v1/workspaces", json={"slug": "other", "name": "Other"})
    return "/api/v1/workspaces/other"


async def _refused_elsewhere(client: httpx.AsyncClient, elsewhere: str, **ids: str) -> None:
    """Check that a key sees nothing of another workspace, on any route."""
    for needed, method, path, body in ROUTES:
        if needed != "operator":
            there = path.replace(WS, elsewhere)
            answer = await ask(client, (needed, method, there, body), **ids)
            problem(answer, 404, "not_found")
    listed = (await client.get("/api/v1/workspaces")).json()["items"]
    assert [workspace["slug"] for workspace in listed] == ["default"]


async def test_an_operators_key_for_a_workspace_works_in_no_other(server: Server) -> None:
    elsewhere = await _second_workspace(server)
    theirs = await server.http.post(elsewhere + "/jobs", json=echo())
    made = (await server.http.post(WS + "/keys", json={"label": "ci", "role": "admin"})).json()
    client = server.client(made["key"])
    assert (await client.post(JOBS, json=echo())).status_code == 202
    job_id = theirs.json()["job_id"]
    await _refused_elsewhere(client, elsewhere, job=job_id, lane_job=job_id)


async def test_a_members_key_for_one_workspace_works_in_no_other_of_theirs(server: Server) -> None:
    elsewhere = await _second_workspace(server)
    theirs = await server.http.post(elsewhere + "/jobs", json=echo())
    member: dict[str, str] = {}
    for workspace in (WS, elsewhere):
        body = {"name": "in both", "role": "admin"}
        member = (await server.http.post(workspace + "/members", json=body)).json()
    keys = {}
    for workspace in (WS, elsewhere):
        body = {"label": "k", "role": "admin", "user_id": member["user_id"]}
        keys[workspace] = (await server.http.post(workspace + "/keys", json=body)).json()["key"]
    job_id = theirs.json()["job_id"]
    client = server.client(keys[WS])
    assert (await client.get(JOBS)).status_code == 200
    await _refused_elsewhere(client, elsewhere, job=job_id, lane_job=job_id)
    assert (await server.client(keys[elsewhere]).get(elsewhere + "/jobs")).status_code == 200


async def test_an_artifact_is_not_there_for_a_key_of_another_workspace(server: Server) -> None:
    artifact_id = await kept_artifact(server, b"secret")
    elsewhere = await _second_workspace(server)
    made = (await server.http.post(elsewhere + "/keys", json={"label": "k"})).json()
    client = server.client(made["key"])
    for path in ("url", "content"):
        answer = await client.get(f"/api/v1/artifacts/{artifact_id}/{path}")
        problem(answer, 404, "not_found")
        assert (await server.http.get(f"/api/v1/artifacts/{artifact_id}/{path}")).is_success


async def kept_artifact(server: Server, content: bytes) -> str:
    """Run a job that leaves one file; return the artifact's id."""
    artifact = kept_file(server, "a.txt", content)
    await server.run(Outcome(Status.SUCCEEDED, {"outputs": {}}, artifacts=(artifact,)))
    return artifact.id


# --- signed links ---------------------------------------------------------------------------------


async def _signed(server: Server, artifact_id: str, expires: int) -> str:
    """Make a link as the server would, for a time of the test's choice."""
    found = await server.catalogue.find_artifact(artifact_id)
    signature = await Signer(server.directory).sign(found.id, found.digest, expires)
    return f"/api/v1/artifacts/{artifact_id}/content?expires={expires}&signature={signature}"


async def test_a_signed_link_needs_no_key_until_its_time_is_over(server: Server) -> None:
    artifact_id = await kept_artifact(server, b"hello")
    anyone = server.client()
    now = int(time.time())
    assert (await anyone.get(await _signed(server, artifact_id, now + 600))).content == b"hello"
    problem(await anyone.get(await _signed(server, artifact_id, now - 600)), 403, "forbidden")
    postponed = (await _signed(server, artifact_id, now - 600)).replace(
        f"expires={now - 600}", f"expires={now + 600}"
    )
    problem(await anyone.get(postponed), 403, "forbidden")


async def test_a_link_that_the_server_signs_lasts_as_long_as_the_setting_says(
    serve: Any,
) -> None:
    server = await serve(signed_url_seconds=60)
    artifact_id = await kept_artifact(server, b"hello")
    link = (await server.http.get(f"/api/v1/artifacts/{artifact_id}/url")).json()
    expires = int(httpx.URL(link["url"]).params["expires"])
    assert 0 < expires - time.time() <= 61
    assert (await server.client().get(link["url"])).content == b"hello"


async def test_a_signature_is_over_at_the_moment_it_names(server: Server) -> None:
    signer = Signer(server.directory)
    signature = await signer.sign("a", "sha256:b", 1000)
    await signer.check(signature, "a", "sha256:b", 1000, now=999.9)
    with pytest.raises(Forbidden):
        await signer.check(signature, "a", "sha256:b", 1000, now=1000.0)


def basic(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


async def test_a_key_may_be_the_password_of_basic(server: Server) -> None:
    client = server.client()
    for user in ("", "anyone", "a:b"[:1]):
        answer = await client.get(JOBS, headers=basic(f"{user}:{KEY}"))
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer \xff",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"\xff:\xfe").decode(),
        "Digest abc",
        KEY,
    ],
)
async def test_a_malformed_or_unknown_key_is_refused(standing: Server, value: str) -> None:
    headers = {"Authorization": value.encode("latin-1")}
    answer = await standing.client().get(JOBS, headers=headers)  # type: ignore[arg-type]
    problem(answer, 401, "unauthenticated")


@pytest.mark.parametrize("cookie", ["ade_session=", "ade_session", "x=1", "x_ade_session=1"])
async def test_a_cookie_without_a_token_is_none(standing: Server, cookie: str) -> None:
    problem(await standing.client().get(JOBS, headers={"Cookie": cookie}), 401, "unauthenticated")


@pytest.mark.parametrize("cookie", ["ade_session=wrong", "x; ade_session=\x80", "a;ade_session=1"])
async def test_an_unknown_token_in_the_cookie_is_refused(standing: Server, cookie: str) -> None:
    headers = {"Cookie": cookie.encode("latin-1")}
    answer = await standing.client().get(JOBS, headers=headers)  # type: ignore[arg-type]
    problem(answer, 401, "session_ended")


async def test_a_revoked_key_is_believed_for_two_seconds_at_most(server: Server) -> None:
    now = 100.0
    authenticator = Authenticator(server.directory, lambda: now)
    made = (await server.http.post(WS + "/keys", json={"label": "k"})).json()
    await authenticator.principal_of(made["key"])
    revoked = await server.http.delete(f"{WS}/keys/{made['key_id']}")
    assert revoked.json()["revoked_at"] is not None
    now += KEY_CACHE_SECONDS - 0.01
    await authenticator.principal_of(made["key"])
    now += 0.02
    with pytest.raises(Exception, match="not valid"):
        await authenticator.principal_of(made["key"])
    problem(await server.client(made["key"]).get(JOBS), 401, "unauthenticated")


async def test_what_is_taken_here_is_gone_here_at_once(server: Server) -> None:
    made = (await server.http.post(WS + "/keys", json={"label": "k"})).json()
    client = server.client(made["key"])
    assert (await client.get(JOBS)).status_code == 200
    await server.http.delete(f"{WS}/keys/{made['key_id']}")
    problem(await client.get(JOBS), 401, "unauthenticated")


async def test_an_unknown_key_is_asked_for_once(server: Server) -> None:
    asked = 0
    find = server.directory.find_key

    async def count(digest: str) -> Any:
        nonlocal asked
        asked += 1
        return await find(digest)

    server.directory.find_key = count  # type: ignore[method-assign]
    for key in ("wrong", "wrong", KEY, KEY):
        await server.client(key).get(JOBS)
    assert asked == 2
