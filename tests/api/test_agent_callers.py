"""Who may call the worker contract: agents, operators, and trusted networks without a key."""

from typing import Any

import httpx
import pytest
from tests.api.agents import PlainWorker, submit_container
from tests.api.conftest import Serve
from tests.api.server import KEY, Server, problem

from ade.app.enrolled_agents import EnrolledAgents
from ade.clock import ManualClock
from ade.domain.errors import Unavailable
from ade.http.contract.agent_callers import trusted_networks
from ade.settings import Settings

FAR = "192.0.2.7"
ROUTES = ["/api/agent/next-job", "/api/agent/job-status", "/api/agent/heartbeat"]


def client(
    server: Server, key: str | None = None, address: str = "127.0.0.1", **headers: str
) -> httpx.AsyncClient:
    """Make a client at an address."""
    transport = httpx.ASGITransport(server.app, client=(address, 1234))
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return httpx.AsyncClient(
        transport=transport, base_url="http://ade", headers=headers, timeout=30
    )


async def enrol(server: Server, name: str = "a", **more: Any) -> dict[str, Any]:
    """Enrol an agent."""
    answer = await server.http.post("/api/v1/agents", json={"name": name} | more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def asks(http: httpx.AsyncClient, name: str = "a") -> int:
    """Ask for work, and return the status."""
    return (await PlainWorker(http, name).next_job()).status_code


async def test_a_worker_without_a_key_works_from_this_machine(server: Server) -> None:
    job_id = await submit_container(server)
    worker = PlainWorker(client(server))
    assert (await worker.take())["job_id"] == job_id
    assert (await worker.beat()).status_code == 200
    assert (await worker.say(job_id, "running")).status_code == 200
    assert (await worker.status(job_id))["status"] == "running"
    assert (await worker.say(job_id, "finished", exit_code=0)).status_code == 200


async def test_elsewhere_a_key_is_needed(server: Server) -> None:
    for path in ROUTES:
        answer = await client(server, address=FAR).post(path, json={"worker_id": "a"})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path


async def test_sandboxed_jobs_need_a_key_everywhere(server: Server) -> None:
    """Without one, any program of this machine could read the inputs of all workspaces."""
    message = {"limit": 1, "kinds": ["echo"]}
    unknown = await client(server, **{"agent-name": "a"}).post("/api/agent/claims", json=message)
    assert (unknown.status_code, unknown.json()["code"]) == (401, "unauthenticated")
    enrolled = await enrol(server)
    known = await client(server, enrolled["key"]).post("/api/agent/claims", json=message)
    assert (known.status_code, known.json()["claims"]) == (200, [])


async def test_other_networks_can_be_trusted(serve: Serve) -> None:
    server = await serve(worker_networks=("192.0.2.0/24",))
    assert await asks(client(server, address=FAR)) == 204
    assert await asks(client(server)) == 401


async def test_browsers_and_unknown_proxies_are_not_trusted(server: Server) -> None:
    for name, value in (
        ("origin", "https://example.org"),
        ("accept-language", "de"),
        ("cookie", "a=b"),
        ("sec-fetch-site", "same-origin"),
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
    ):
        assert await asks(client(server, **{name: value})) == 401, name


@pytest.mark.parametrize(
    ("settings", "trusted"),
    [
        ({}, True),
        ({"host": "::1"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"public_url": "https://ade.example"}, False),
        ({"trusted_proxies": "127.0.0.1"}, False),
        ({"worker_networks": "none"}, False),
        ({"host": "0.0.0.0", "worker_networks": "127.0.0.0/8"}, True),
    ],
)
def test_this_machine_is_trusted_while_nobody_else_can_come(
    settings: dict[str, Any], trusted: bool
) -> None:
    assert bool(trusted_networks(Settings(**settings))) is trusted


async def test_an_agent_speaks_for_itself_only(server: Server) -> None:
    made = await enrol(server, labels=["gpu"])
    http = client(server, made["key"], FAR)
    assert await asks(http) == 204
    assert await asks(http, "b") == 403
    unnamed = await http.post("/api/agent/next-job", json={})
    assert unnamed.status_code == 204  # the key says who it is


async def test_an_enrolled_agent_must_send_its_key(server: Server) -> None:
    await enrol(server)
    nobody = client(server)
    assert (await asks(nobody), await asks(nobody, "b")) == (403, 204)
    await server.http.delete("/api/v1/agents/a")
    assert await asks(nobody) == 403


async def test_an_agent_has_the_labels_that_it_was_enrolled_with(server: Server) -> None:
    made = await enrol(server, labels=["gpu"])
    worker = PlainWorker(client(server, made["key"]), "a")
    await submit_container(server, labels=("big",))
    gpu = await submit_container(server, labels=("gpu",))
    assert (await worker.take(labels=["big"]))["job_id"] == gpu
    assert (await worker.next_job(labels=["big"])).status_code == 204


async def test_an_agent_sees_only_what_it_holds(server: Server) -> None:
    made, other = await enrol(server), await enrol(server, "b")
    mine = PlainWorker(client(server, made["key"]), "a")
    theirs = PlainWorker(client(server, other["key"]), "b")
    job_id = await submit_container(server)
    await theirs.next_job()
    assert (await theirs.http.get(f"/status/{job_id}")).status_code == 200
    assert (await mine.http.get(f"/status/{job_id}")).status_code == 404
    assert (await mine.say(job_id, "running")).status_code == 409
    await mine.beat()
    assert list((await mine.http.get("/hosts")).json()["hosts"]) == ["a"]
    assert (await mine.http.get("/api/v1/agents")).status_code == 401
    assert (await mine.http.get("/api/v1/workspaces/default/jobs")).status_code == 401


async def test_users_who_are_no_operators_are_no_workers(server: Server) -> None:
    key = (await server.http.post("/api/v1/workspaces/default/keys", json={"label": "x"})).json()[
        "key"
    ]
    assert await asks(client(server, key)) == 403
    assert await asks(client(server, KEY, FAR)) == 204


async def test_wrong_keys_are_refused_and_counted(serve: Serve) -> None:
    server = await serve(wrong_keys_per_minute=2)
    http = client(server, "adea_wrong", FAR)
    assert [await asks(http) for _ in range(3)] == [401, 401, 429]


async def test_a_code_is_traded_once(server: Server) -> None:
    made = await enrol(server, labels=["gpu"])
    http = client(server, address=FAR)
    body = {"code": made["enrolment_code"]}
    traded = await http.post("/api/agent/enrol", json=body)
    assert traded.status_code == 200
    found = traded.json()
    assert (found["name"], found["labels"]) == ("a", ["gpu"])
    assert await asks(client(server, found["key"], FAR)) == 204
    assert await asks(client(server, made["key"], FAR)) == 401  # the other key replaced it
    again = await http.post("/api/agent/enrol", json=body)
    assert (again.status_code, again.json()["code"]) == (401, "unauthenticated")


async def test_a_key_that_is_used_makes_its_code_void(server: Server) -> None:
    made = await enrol(server)
    assert await asks(client(server, made["key"])) == 204
    refused = await client(server).post("/api/agent/enrol", json={"code": made["enrolment_code"]})
    assert refused.status_code == 401


async def test_a_rotated_key_works_beside_the_former_one(server: Server) -> None:
    first = (await enrol(server))["key"]
    answer = await server.http.post("/api/v1/agents/a/rotate")
    assert answer.status_code == 200
    second = answer.json()["key"]
    assert [await asks(client(server, key)) for key in (first, second)] == [204, 204]
    at_once = await server.http.post("/api/v1/agents/a/rotate", json={"overlap_minutes": 0})
    third = at_once.json()["key"]
    keys = (first, second, third)
    assert [await asks(client(server, key)) for key in keys] == [401, 401, 204]


async def test_a_revoked_agent_is_refused(server: Server) -> None:
    made = await enrol(server)
    http = client(server, made["key"])
    assert await asks(http) == 204
    assert (await server.http.delete("/api/v1/agents/a")).json()["status"] == "revoked"
    assert await asks(http) == 401
    [listed] = (await server.http.get("/api/v1/agents")).json()["items"]
    assert (listed["status"], listed["last_used_at"] is None) == ("revoked", False)
    assert "key" not in str(listed)


async def test_enrolment_is_for_operators(server: Server) -> None:
    key = (
        await server.http.post(
            "/api/v1/workspaces/default/keys", json={"label": "x", "role": "admin"}
        )
    ).json()["key"]
    user = server.client(key)
    problem(await user.get("/api/v1/agents"), 403, "forbidden")
    problem(await user.post("/api/v1/agents", json={"name": "a"}), 403, "forbidden")
    problem(await user.post("/api/v1/agents/a/rotate"), 403, "forbidden")
    problem(await user.delete("/api/v1/agents/a"), 403, "forbidden")
    problem(await server.http.delete("/api/v1/agents/a"), 404, "not_found")
    problem(await server.http.post("/api/v1/agents", json={"name": "a b"}), 422, "validation_error")
    await enrol(server)
    problem(await server.http.post("/api/v1/agents", json={"name": "a"}), 409, "conflict")


async def test_known_keys_stay_valid_while_the_database_is_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await enrol(server))["key"]
    clock = ManualClock()
    known = EnrolledAgents(server.directory.agents(), clock)
    assert await known.by_key(key) is not None
    clock.advance(60)

    async def away(look: object) -> None:
        raise Unavailable("The database does not answer.")

    monkeypatch.setattr(server.kernel.store, "aread", away)
    assert await known.by_key(key) is not None
    with pytest.raises(Unavailable):  # it may have been made a moment ago
        await known.by_key("adea_another")


async def test_an_operators_key_stays_valid_while_the_database_is_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await asks(server.http) == 204

    async def away(look: object) -> None:
        raise Unavailable("The database does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(server.kernel.store, "aread", away)
        server.app.state.context.authenticator.forget()
        beat = await PlainWorker(server.http, "a").beat()
    assert beat.status_code == 200
