"""Orders as no server of the tests gives them, over a real engine: a job that is given again."""

import asyncio
import json
from collections import deque
from pathlib import Path
from typing import Any

import httpx
from tests.container_engine import IMAGE

from ade.agents.containers.attempt import Host
from ade.agents.containers.attempt_folder import StateFolder
from ade.agents.containers.delivery import HttpOutput
from ade.agents.containers.engine import ContainerEngine
from ade.agents.containers.rules import HostRules
from ade.agents.containers.work import ContainerWork, WorkRules
from ade.agents.contract_calls import ContractCalls

JOB = "01900000-0000-7000-8000-00000000000b"


class Server:
    """Give orders one after the other, each once the one before runs, and take reports."""

    def __init__(self, orders: list[dict[str, Any]]) -> None:
        self._orders = deque(orders)
        self.announced = asyncio.Event()
        self.announced.set()
        self.ended = asyncio.Event()
        self.reports: list[tuple[int, str]] = []

    async def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        running = {"job_id": JOB, "status": "running", "worker_id": "a", "stop_requested": False}
        if path.endswith("/next-job"):
            await self.announced.wait()
            self.announced.clear()
            return httpx.Response(200, json=self._orders.popleft())
        if path.endswith("/output"):
            end = int(request.headers["upload-offset"]) + len(request.content)
            return httpx.Response(204, headers={"upload-offset": str(end)})
        if path.endswith("/job-status"):
            report = json.loads(request.content)
            self.reports.append((report["attempt_number"], report["status"]))
            if report["status"] == "running" and self._orders:
                self.announced.set()
            if report["status"] == "finished":
                self.ended.set()
        return httpx.Response(200, json=running)


def order(attempt: int, script: str) -> dict[str, Any]:
    return {
        "job_id": JOB,
        "image": IMAGE,
        "command": f"/bin/sh -c '{script}'",
        "container_name": "ade-test-work",
        "attempt_number": attempt,
        "attempt_token": "token",
    }


async def test_a_later_attempt_ends_the_earlier_one_first(
    engine: ContainerEngine, tmp_path: Path
) -> None:
    server = Server([order(1, "exec /bin/busybox sleep 1000"), order(2, "exit 0")])
    transport = httpx.MockTransport(server.answer)
    state = StateFolder(tmp_path, 10**6)
    async with httpx.AsyncClient(transport=transport, base_url="http://ade") as http:
        calls = ContractCalls(http, "a", [])
        rules = HostRules("a")
        host = Host(engine, calls, rules, lambda one: HttpOutput(calls, one.proof()))
        work = ContainerWork(host, state, WorkRules(slots=2))
        with state.opened():
            working = asyncio.create_task(work.run())
            async with asyncio.timeout(120):
                await server.ended.wait()
                work.drain()
                await working
    assert server.reports == [(1, "running"), (2, "running"), (2, "finished")]
    assert await engine.find_all("a") == []
