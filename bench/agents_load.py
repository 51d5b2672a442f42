"""Act as many agents that have nothing to do but ask, and measure what they feel.

Requests are bytes made beforehand, over HTTP/1.1 with connections that stay open, so that hundreds
of agents cost little. An agent has one connection for asking and one for heartbeats, which must not
wait behind a long poll.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

HEARTBEAT_SECONDS = 15.0
ANSWER_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class Polling:
    """How many agents there are, how often they ask, and how long each waits for an answer."""

    agents: int
    every_seconds: float
    wait_seconds: int = 0

    @property
    def label(self) -> str:
        how = f"long polls of {self.wait_seconds} s" if self.wait_seconds else "short polls"
        every = f", every {self.every_seconds:g} s" if self.every_seconds else ""
        return f"{self.agents} agents, {how}{every}"


@dataclass
class Felt:
    """What the agents felt while it counted."""

    polls: int = 0
    beats: int = 0
    idle_seconds: list[float] = field(default_factory=list)
    jobs: dict[str, float] = field(default_factory=dict)
    errors: int = 0


class Agents:
    """Run agents against a server, until the block ends."""

    def __init__(self, url: str, token: str, polling: Polling) -> None:
        parts = urlsplit(url)
        self._host, self._port = str(parts.hostname), int(parts.port or 80)
        self._token = token
        self._polling = polling
        self.felt = Felt()
        self.jobs = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Agents:
        for number in range(self._polling.agents):
            name = f"agent-{number}"
            self._tasks.append(asyncio.create_task(self._ask(name)))
            self._tasks.append(asyncio.create_task(self._beat(name)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, name: str) -> None:
        polling = self._polling
        wait = f',"wait":{polling.wait_seconds}' if polling.wait_seconds else ""
        ask = self._request("/api/agent/next-job", f'{{"worker_id":"{name}"{wait}}}')
        await asyncio.sleep(random.uniform(0, polling.every_seconds or 1))
        connection = await asyncio.open_connection(self._host, self._port)
        while True:
            began = time.monotonic()
            status, body = await self._answer(connection, ask)
            took = time.monotonic() - began
            self.felt.polls += 1
            if status == 200:
                async with self.jobs:
                    self.felt.jobs[body.split(b'"job_id": "')[1][:36].decode()] = time.monotonic()
                    self.jobs.notify_all()
                await self._end(connection, name, body)
            elif status != 204:
                self.felt.errors += 1
            elif not polling.wait_seconds:
                self.felt.idle_seconds.append(took)
            await asyncio.sleep(max(polling.every_seconds - took, 0))

    async def _end(
        self,
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        name: str,
        body: bytes,
    ) -> None:
        job_id = body.split(b'"job_id": "')[1][:36].decode()
        end = f'{{"job_id":"{job_id}","status":"finished","worker_id":"{name}"}}'
        await self._answer(connection, self._request("/api/agent/job-status", end))

    async def _beat(self, name: str) -> None:
        text = f'{{"worker_id":"{name}","info":{{"load":0.5,"active_jobs":0}}}}'
        beat = self._request("/api/agent/heartbeat", text)
        await asyncio.sleep(random.uniform(0, HEARTBEAT_SECONDS))
        connection = await asyncio.open_connection(self._host, self._port)
        while True:
            await self._answer(connection, beat)
            self.felt.beats += 1
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _answer(
        self, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes
    ) -> tuple[int, bytes]:
        reader, writer = connection
        writer.write(request)
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line[15:])
            return int(head[9:12]), await reader.readexactly(length)

    def _request(self, path: str, body: str) -> bytes:
        return (
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()
