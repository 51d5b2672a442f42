"""PgQueuer on asyncpg and uvloop. It deletes a finished job and logs its outcome in a table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from pgqueuer.core.qm import QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.cases import BULK_ROWS, Case, Contestant, Sample


class PgQueuer(Contestant):
    name = "PgQueuer"
    database = "postgres"
    cases = (
        Case("enqueue", jobs_max=10_000),
        Case("bulk"),
        Case("drain", batch=1, jobs_max=3_000),
        Case("drain", batch=10, jobs_max=20_000),
        Case("drain", batch=100),
        Case("pickup"),
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        uvloop.run(self._install())

    async def _install(self) -> None:
        async with self._queries() as queries:
            await queries.install()

    def enqueue(self, count: int) -> Sample:
        return uvloop.run(self._enqueue(count))

    async def _enqueue(self, count: int) -> Sample:
        async with self._queries() as queries:
            began = time.perf_counter()
            for number in range(count):
                await queries.enqueue("noop", b'{"n": %d}' % number)
            return Sample(count, time.perf_counter() - began)

    def enqueue_bulk(self, count: int) -> Sample:
        return uvloop.run(self._enqueue_bulk(count))

    async def _enqueue_bulk(self, count: int) -> Sample:
        async with self._queries() as queries:
            began = time.perf_counter()
            for start in range(0, count, BULK_ROWS):
                rows = min(BULK_ROWS, count - start)
                payloads: list[bytes | None] = [b'{"n": %d}' % (start + n) for n in range(rows)]
                await queries.enqueue(["noop"] * rows, payloads, [0] * rows)
            return Sample(count, time.perf_counter() - began)

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        return uvloop.run(self._drain(count, batch))

    async def _drain(self, count: int, batch: int) -> Sample:
        async with self._queries() as queries:
            manager = QueueManager(queries)
            done = 0

            @manager.entrypoint("noop")
            async def noop(job: Job) -> None:
                nonlocal done
                done += 1
                if done >= count:
                    manager.shutdown.set()

            began = time.perf_counter()
            await manager.run(batch_size=batch, mode=QueueExecutionMode.drain)
            return Sample(done, time.perf_counter() - began)

    def pickup(self, count: int) -> Sample:
        return uvloop.run(self._pickup(count))

    async def _pickup(self, count: int) -> Sample:
        async with self._queries() as client, self._queries() as queries:
            manager = QueueManager(queries)
            started: asyncio.Queue[float] = asyncio.Queue()

            @manager.entrypoint("noop")
            async def noop(job: Job) -> None:
                started.put_nowait(time.perf_counter())

            worker = asyncio.create_task(manager.run(batch_size=10))
            await client.enqueue("noop", b"{}")
            await started.get()
            latencies = []
            for _ in range(count):
                await asyncio.sleep(0.005)  # the worker goes back to waiting
                began = time.perf_counter()
                await client.enqueue("noop", b"{}")
                latencies.append(await started.get() - began)
            manager.shutdown.set()
            await worker
        return Sample(count, sum(latencies), tuple(latencies))

    @asynccontextmanager
    async def _queries(self) -> AsyncIterator[Queries]:
        connection = await asyncpg.connect(self.url)
        try:
            yield Queries(AsyncpgDriver(connection))
        finally:
            await connection.close()
