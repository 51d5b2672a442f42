"""Jobs for agents, and an agent that knows the worker contract and none of ADE's code."""

import json
from typing import Any

import httpx
from tests.api.server import Server

from ade.domain.agent_pool import AgentPool
from ade.domain.job import AGENT_POOL
from ade.domain.limits import Limits
from ade.stages.submit.model import Submission

LIMITS = Limits(
    timeout_ms=600_000, cpu_ms=60_000, memory_mb=512, max_output_kb=256, max_artifacts=9
)
INPUTS = {
    "image": "example/simulator:1",
    "command": "--config /data/configs/demo.yaml",
    "config_path": "configs/demo.yaml",
    "volumes": [{"host": "/srv/shared", "container": "/data", "mode": "rw"}],
}


async def submit_container(
    server: Server,
    *,
    host: str | None = None,
    require_host: bool = False,
    labels: tuple[str, ...] = (),
    job_name: str = "Demo-Run1",
    **inputs: Any,
) -> str:
    """Submit a job for agents, and return its id."""
    workspace = await server.directory.find_workspace("default")
    assert workspace is not None
    asked: dict[str, Any] = INPUTS | inputs
    if host is not None:
        asked |= {"preferred_host": host, "require_host": require_host}
    accepted = await server.kernel.submit(
        Submission(
            workspace_id=workspace.id,
            kind="container",
            payload=json.dumps({"job_type": "container", "inputs": asked}),
            limits=LIMITS,
            submitted_by="someone",
            pool=AGENT_POOL,
            retries=0,
            dedupe=False,
            agent_pool=AgentPool.of(host, labels, require_host=require_host),
            job_name=job_name,
        )
    )
    return accepted.job.id


class PlainWorker:
    """Call the three routes of the contract, by plain HTTP."""

    def __init__(self, http: httpx.AsyncClient, worker_id: str = "tiago-gpu") -> None:
        self.http = http
        self.worker_id = worker_id

    async def next_job(self, **more: Any) -> httpx.Response:
        """Ask for a job."""
        return await self.http.post(
            "/api/agent/next-job", json={"worker_id": self.worker_id} | more
        )

    async def take(self, **more: Any) -> dict[str, Any]:
        """Take a job that must be there."""
        answer = await self.next_job(**more)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def say(self, job_id: str, status: str, **more: Any) -> httpx.Response:
        """Report on a job."""
        body = {"job_id": job_id, "status": status, "worker_id": self.worker_id}
        return await self.http.post("/api/agent/job-status", json=body | more)

    async def beat(self, **info: Any) -> httpx.Response:
        """Send a heartbeat."""
        body = {"worker_id": self.worker_id, "info": info}
        return await self.http.post("/api/agent/heartbeat", json=body)

    async def status(self, job_id: str) -> dict[str, Any]:
        """Look at a job."""
        found: dict[str, Any] = (await self.http.get(f"/status/{job_id}")).json()
        return found
