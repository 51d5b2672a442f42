"""What operators see of workers, and do to jobs, queues and workers."""

from typing import Any

import pytest
from tests.api.server import JOBS, Server, problem, succeeded

from ade.domain.errors import LeaseLost
from ade.stages.claim import ClaimRequest
from ade.stages.workers import RunningWorker
from ade.store.rows import Claim

OPS = "/api/v1/ops"


async def submit(server: Server, value: int = 1) -> str:
    return str((await server.submit(value=value))["job_id"])


async def claim(server: Server, owner: str = "worker-1") -> Claim | None:
    request = ClaimRequest(owner, 1, kinds=frozenset({"echo"}))
    return next(iter(await server.kernel.claim(request)), None)


async def waiting(server: Server, job_id: str) -> Any:
    return (await server.http.get(f"{JOBS}/{job_id}")).json()["waiting"]


async def test_workers_are_shown_with_the_jobs_that_they_hold(server: Server) -> None:
    held, elsewhere = await submit(server, 1), await submit(server, 2)
    await server.kernel.note_worker(RunningWorker("w", "host", frozenset({"echo"}), 4))
    await claim(server, "w")
    await claim(server, "gone")
    found = (await server.http.get(f"{OPS}/workers")).json()
    (worker,) = found["items"]
    assert (worker["name"], worker["slots"], worker["kinds"]) == ("w", 4, ["echo"])
    assert [lease["job_id"] for lease in worker["leases"]] == [held]
    assert worker["leases"][0]["attempt"] == 1
    assert [lease["job_id"] for lease in found["leases_of_others"]] == [elsewhere]


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ({}, "all jobs"),
        ({"workspace": "default"}, "all jobs of this workspace"),
        ({"kind": "echo"}, "jobs of kind echo"),
        ({"workspace": "default", "kind": "echo"}, "jobs of kind echo of this workspace"),
    ],
)
async def test_paused_jobs_wait_and_say_why(
    server: Server, scope: dict[str, str], said: str
) -> None:
    paused = await server.http.post(f"{OPS}/pause", json={**scope, "reason": "bad release"})
    assert paused.status_code == 200
    assert paused.json()["reason"] == "bad release"
    job = await submit(server)
    assert await claim(server) is None
    why = await waiting(server, job)
    assert why["reason"] == "paused_by_operator"
    assert why["detail"].startswith(f"An operator has paused {said} since ")
    assert why["detail"].endswith(": bad release")
    listed = (await server.http.get(JOBS)).json()["items"]
    assert [one["waiting"]["reason"] for one in listed] == ["paused_by_operator"]
    assert (await server.http.get(f"{OPS}/pauses")).json()["items"] == [paused.json()]

    resumed = await server.http.post(f"{OPS}/resume", json=scope)
    assert resumed.status_code == 204
    claimed = await claim(server)
    assert claimed is not None
    assert claimed.id == job
    problem(await server.http.post(f"{OPS}/resume", json=scope), 404, "not_found")


async def test_a_drained_worker_takes_nothing_until_it_may(server: Server) -> None:
    job = await submit(server)
    await server.kernel.note_worker(RunningWorker("w", "host", frozenset({"echo"}), 4))
    body = {"worker": "w", "reason": "new disk"}
    assert (await server.http.post(f"{OPS}/drain", json=body)).status_code == 200
    assert await claim(server, "w") is None
    (worker,) = (await server.http.get(f"{OPS}/workers")).json()["items"]
    assert worker["drained"]["reason"] == "new disk"
    assert (await server.http.post(f"{OPS}/undrain", json={"worker": "w"})).status_code == 204
    claimed = await claim(server, "w")
    assert claimed is not None
    assert claimed.id == job


async def test_what_is_not_there_cannot_be_paused_or_drained(standing: Server) -> None:
    for path, body in [
        ("pause", {"workspace": "nope", "reason": "r"}),
        ("resume", {"kind": "echo"}),
        ("drain", {"worker": "nope", "reason": "r"}),
        ("undrain", {"worker": "nope"}),
    ]:
        problem(await standing.http.post(f"{OPS}/{path}", json=body), 404, "not_found")


async def test_an_operator_queues_fails_and_cancels_jobs(server: Server) -> None:
    job = await submit(server)
    await server.claim()
    act = f"{OPS}/jobs/{job}"
    refused = await server.http.post(f"{act}/requeue", json={"reason": "stuck"})
    problem(refused, 409, "invalid_transition")
    requeued = await server.http.post(f"{act}/requeue", json={"reason": "stuck", "force": True})
    assert requeued.json()["status"] == "queued"
    failed = await server.http.post(f"{act}/fail", json={"reason": "poison"})
    assert failed.json()["status"] == "failed"
    assert failed.json()["error"]["code"] == "FAILED_BY_OPERATOR"
    cancelled = await server.http.post(
        f"{act}/cancel", json={"reason": "not wanted", "force": True}
    )
    assert cancelled.json()["status"] == "cancelled"
    events = (await server.http.get(f"{JOBS}/{job}/events")).text
    for reason in ("stuck", "poison", "not wanted"):
        assert reason in events


async def test_the_late_end_of_a_requeued_attempt_is_refused(server: Server) -> None:
    job = await submit(server)
    held = await server.claim()
    body = {"reason": "stuck", "force": True}
    await server.http.post(f"{OPS}/jobs/{job}/requeue", json=body)
    with pytest.raises(LeaseLost):
        await server.finish(held, succeeded(1))
    assert (await server.http.get(f"{JOBS}/{job}")).json()["status"] == "queued"


@pytest.mark.parametrize("job_id", ["nope", "00000000-0000-0000-0000-000000000000"])
async def test_a_job_that_is_not_there(standing: Server, job_id: str) -> None:
    answer = await standing.http.post(f"{OPS}/jobs/{job_id}/fail", json={"reason": "r"})
    problem(answer, 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "workers"),
        ("GET", "pauses"),
        ("POST", "pause"),
        ("POST", "resume"),
        ("POST", "drain"),
        ("POST", "undrain"),
        ("POST", "jobs/x/requeue"),
        ("POST", "jobs/x/fail"),
        ("POST", "jobs/x/cancel"),
    ],
)
async def test_operators_only(standing: Server, method: str, path: str) -> None:
    made = await standing.http.post(
        "/api/v1/workspaces/default/keys", json={"label": "k", "role": "admin"}
    )
    async with standing.client(made.json()["key"]) as http:
        problem(await http.request(method, f"{OPS}/{path}", json={}), 403, "forbidden")


async def test_each_act_needs_its_reason(standing: Server) -> None:
    for path in ("pause", "drain", "jobs/x/fail"):
        body = {"worker": "w"} if path == "drain" else {}
        problem(await standing.http.post(f"{OPS}/{path}", json=body), 422, "validation_error")
