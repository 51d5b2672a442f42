"""Health, readiness and metrics: open to those who watch."""

import asyncio
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.api.server import JOBS, Server, echo

from ade.http import Component, health
from ade.stages.kernel_settings import KernelSettings


async def test_a_well_server_says_so(server: Server) -> None:
    client = server.client()
    answer = await client.get("/api/v1/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    names = [one["name"] for one in answer.json()["components"]]
    assert names == ["database", "storage", "safe-mode", "shared-folder"]
    assert (await client.get("/healthz")).text == "ok\n"
    assert (await client.get("/readyz")).text == "ready\n"


async def test_safe_mode_is_a_degraded_component(serve: Any) -> None:
    server = await serve(rules=KernelSettings(safe_mode=True))
    answer = await server.client().get("/api/v1/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    found = {one["name"]: one["status"] for one in answer.json()["components"]}
    assert found["safe-mode"] == "degraded"


async def test_probes_of_others_are_asked_and_their_falls_are_caught(
    serve: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(health, "PROBE_SECONDS_MAX", 0.05)

    async def busy() -> Component:
        return Component("degraded", "2 of 2 places are taken")

    def broken() -> Component:
        raise RuntimeError("secret")

    async def silent() -> Component:
        await asyncio.Event().wait()
        raise AssertionError

    server = await serve(
        health_probes={"worker pool": busy, "sweeper": broken, "isolation": silent}
    )
    answer = await server.client().get("/api/v1/health")
    assert answer.status_code == 503
    assert answer.json()["status"] == "down"
    found = {one["name"]: one for one in answer.json()["components"]}
    assert found["worker pool"]["status"] == "degraded"
    assert found["sweeper"]["status"] == "down"
    assert "secret" not in answer.text
    assert found["isolation"]["status"] == "down"


async def test_a_server_without_its_database_is_not_ready(server: Server) -> None:
    async def fail(*_: Any) -> Any:
        raise ConnectionError

    kernel: Any = server.kernel
    kernel.read = fail
    assert (await server.client().get("/readyz")).status_code == 503
    assert (await server.client().get("/healthz")).status_code == 200
    assert (await server.client().get("/api/v1/health")).json()["status"] == "down"


async def metrics(server: Server) -> dict[tuple[str, ...], float]:
    text = (await server.client().get("/metrics")).text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_metrics_count_what_happens(server: Server) -> None:
    before = await metrics(server)
    await server.submit()
    await server.submit(value="other")
    await server.http.post(JOBS, json=echo())
    await server.http.post(JOBS, json={})
    await server.http.post(JOBS + "/batch", json={"jobs": [echo(value=n) for n in range(3)]})
    await server.claim()
    after = await metrics(server)

    def grown(*name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    assert grown("ade_jobs_submitted_total", "accepted") == 4
    assert grown("ade_jobs_submitted_total", "deduplicated") == 2
    assert grown("ade_jobs_submitted_total", "validation_error") == 1
    assert grown("ade_batch_jobs_count") == 1
    route = "/api/v1/workspaces/{ws}/jobs"
    assert grown("ade_http_request_seconds_count", "POST", route, "2xx") == 3
    assert grown("ade_http_request_seconds_count", "POST", route, "4xx") == 1
    assert after["ade_queue_jobs", "local", "queued"] == 3
    assert after["ade_queue_jobs", "local", "running"] == 1


async def test_metrics_do_not_grow_with_what_clients_think_of(server: Server) -> None:
    for n in range(5):
        await server.http.get(f"/nowhere/{n}")
        await server.http.get(f"{JOBS}/{n}")
    names = [key for key in await metrics(server) if "ade_http_request_seconds_count" in key]
    assert not any("nowhere" in " ".join(key) for key in names)
    assert any("/api/v1/workspaces/{ws}/jobs/{job_id}" in key for key in names)
