"""Workspaces, members and keys."""

from typing import Any

import pytest
from tests.api.server import JOBS, Server, problem

WS = "/api/v1/workspaces/default"


async def test_an_operator_makes_workspaces(server: Server) -> None:
    made = await server.http.post("/api/v1/workspaces", json={"slug": "lab", "name": "The lab"})
    assert made.status_code == 201
    found = await server.http.get(f"/api/v1/workspaces/{made.json()['workspace_id']}")
    assert found.json() == made.json()
    assert found.json()["role"] == "admin"
    slugs = [ws["slug"] for ws in (await server.http.get("/api/v1/workspaces")).json()["items"]]
    assert slugs == ["default", "lab"]
    again = await server.http.post("/api/v1/workspaces", json={"slug": "lab", "name": "Again"})
    problem(again, 409, "conflict")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"slug": "x"},
        {"slug": "", "name": "n"},
        {"slug": "UPPER", "name": "n"},
        {"slug": "-x", "name": "n"},
        {"slug": "x\n", "name": "n"},
        {"slug": "a" * 64, "name": "n"},
        {"slug": "a/b", "name": "n"},
        {"slug": "a", "name": ""},
        {"slug": "a", "name": "x" * 201},
        {"slug": "a", "name": "nul\0"},
        {"slug": "a", "name": "n", "owner": "me"},
        {"slug": 1, "name": 2},
        [],
    ],
)
async def test_workspaces_that_cannot_be(standing: Server, body: Any) -> None:
    answer = await standing.http.post("/api/v1/workspaces", json=body)
    problem(answer, 422, "validation_error")


async def test_an_unknown_workspace_is_not_there(standing: Server) -> None:
    for name in ("nope", "00000000-0000-0000-0000-000000000000", "%00", "a" * 300):
        problem(await standing.http.get(f"/api/v1/workspaces/{name}"), 404, "not_found")


async def test_members_come_and_go_with_what_their_keys_may(server: Server) -> None:
    made = await server.http.post(WS + "/members", json={"name": "Ann", "role": "viewer"})
    assert made.status_code == 201
    ann = made.json()
    again = await server.http.post(WS + "/members", json={"name": "Ann", "role": "editor"})
    assert again.json() == {**ann, "role": "editor"}
    assert (await server.http.get(WS + "/members")).json()["items"] == [again.json()]
    key = await server.http.post(WS + "/keys", json={"label": "k", "user_id": ann["user_id"]})
    gone = await server.http.delete(f"{WS}/members/{ann['user_id']}")
    assert gone.status_code == 204
    problem(await server.client(key.json()["key"]).get(JOBS), 404, "not_found")
    problem(await server.http.delete(f"{WS}/members/{ann['user_id']}"), 404, "not_found")
    problem(await server.http.delete(f"{WS}/members/nobody"), 404, "not_found")


async def test_a_key_is_shown_once(server: Server) -> None:
    made = await server.http.post(WS + "/keys", json={"label": "ci", "role": "viewer"})
    assert made.status_code == 201
    key = made.json()
    secret = key.pop("key")
    assert secret.startswith("ade_")
    assert len(secret) >= 4 + 43
    listed = await server.http.get(WS + "/keys")
    assert listed.json()["items"] == [key]
    assert secret not in listed.text
    revoked = await server.http.delete(f"{WS}/keys/{key['key_id']}")
    assert revoked.json()["revoked_at"]
    assert (await server.http.delete(f"{WS}/keys/{key['key_id']}")).json() == revoked.json()
    problem(await server.http.delete(f"{WS}/keys/nope"), 404, "not_found")


async def test_keys_are_made_for_members_only(server: Server) -> None:
    body = {"label": "k", "user_id": "00000000-0000-7000-8000-000000000000"}
    problem(await server.http.post(WS + "/keys", json=body), 404, "not_found")
